import { createRoute } from '@tanstack/react-router'

import { shellRoute } from '#pages/shell-route.ts'

import { AdminKeys } from './admin-keys.tsx'

export const adminKeysRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: 'keys',
  component: AdminKeys,
})
