import { createRoute } from '@tanstack/react-router'

import { shellRoute } from '#pages/shell-route.ts'

import { ProjectKeys } from './keys/project-keys.tsx'
import { ProjectMembers } from './members/project-members.tsx'
import { ProjectLayout } from './project-layout.tsx'
import { ProjectList } from './project-list.tsx'
import { ProjectSettings } from './project-settings.tsx'

const projectsRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: 'projects',
  component: ProjectList,
})
const projectRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: 'projects/$projectId',
  component: ProjectLayout,
})
const settingsRoute = createRoute({
  getParentRoute: () => projectRoute,
  path: '/',
  component: ProjectSettings,
})
const keysRoute = createRoute({
  getParentRoute: () => projectRoute,
  path: 'keys',
  component: ProjectKeys,
})
const membersRoute = createRoute({
  getParentRoute: () => projectRoute,
  path: 'members',
  component: ProjectMembers,
})

export const projectRoutes = [
  projectsRoute,
  projectRoute.addChildren([settingsRoute, keysRoute, membersRoute]),
] as const
