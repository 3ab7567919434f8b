import { createRoute } from '@tanstack/react-router'

import { shellRoute } from '#pages/shell-route.ts'

import { MemberList } from './member-list.tsx'

/** `?email=` shows the member with this address only. */
export const membersRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: 'members',
  validateSearch: ({ email }: Record<string, unknown>): { email?: string } =>
    typeof email === 'string' && email !== '' ? { email } : {},
  component: MemberList,
})
