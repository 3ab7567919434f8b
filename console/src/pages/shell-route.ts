import { createRootRoute, createRoute } from '@tanstack/react-router'

export const rootRoute = createRootRoute()

/** What is around every page is set when the routes are put together (router.tsx). */
export const shellRoute = createRoute({ getParentRoute: () => rootRoute, id: 'shell' })
