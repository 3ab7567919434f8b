import { createRoute } from '@tanstack/react-router'

import { shellRoute } from '#pages/shell-route.ts'

import { Account } from './account.tsx'

export const accountRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: 'account',
  component: Account,
})
