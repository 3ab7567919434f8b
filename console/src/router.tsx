import { createRoute, createRouter, redirect } from '@tanstack/react-router'

import { accountRoute } from '#pages/account/route.tsx'
import { adminKeysRoute } from '#pages/keys/route.tsx'
import { membersRoute } from '#pages/members/route.tsx'
import { NotFound } from '#pages/not-found.tsx'
import { projectRoutes } from '#pages/projects/routes.tsx'
import { rolesRoute } from '#pages/roles/route.tsx'
import { rootRoute, shellRoute } from '#pages/shell-route.ts'
import { Shell } from '#shell/shell.tsx'

/** The console begins where the daily work is. */
const startRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/',
  beforeLoad: () => {
    // The router's way to go on is to throw.
    throw redirect({ to: '/projects', replace: true })
  },
})

/** Around it is what is around every page. */
const unknownRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '$',
  component: NotFound,
})

const pages = [
  startRoute,
  ...projectRoutes,
  membersRoute,
  rolesRoute,
  adminKeysRoute,
  accountRoute,
  unknownRoute,
] as const
const routeTree = rootRoute.addChildren([
  shellRoute.update({ component: Shell }).addChildren(pages),
])

/** Every page of the console, below /console. */
export const router = createRouter({ routeTree, basepath: '/console' })

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
