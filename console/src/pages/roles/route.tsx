import { createRoute } from '@tanstack/react-router'

import { shellRoute } from '#pages/shell-route.ts'

import { Roles } from './roles.tsx'

export const rolesRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: 'roles',
  component: Roles,
})
