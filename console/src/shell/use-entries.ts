import type { Me } from '@gatehouse/contract/members/me'
import { useInfiniteQuery } from '@tanstack/react-query'
import { type NavigateOptions, useParams } from '@tanstack/react-router'

import { membersQuery } from '#pages/members/queries.ts'
import { keysQuery, projectsQuery } from '#pages/projects/queries.ts'
import { may } from '#session/me.ts'

import { places } from './navigation.tsx'

export type Entry = {
  id: string
  name: string
  /** What it can be found by besides its name. */
  also?: string
  kind: string
  target: NavigateOptions
}

/** What the palette can find: the first hundred of each kind, and the keys of the project that is open. */
export function useEntries(me: Me, finds: 'search' | 'projects') {
  const { projectId } = useParams({ strict: false })
  const isSearch = finds === 'search'
  const projects = useInfiniteQuery({ ...projectsQuery, enabled: may(me, 'projects.read') })
  const members = useInfiniteQuery({
    ...membersQuery({}),
    enabled: isSearch && may(me, 'members.read'),
  })
  const keys = useInfiniteQuery({
    ...keysQuery(projectId ?? ''),
    enabled: isSearch && projectId !== undefined,
  })
  const pages: Entry[] = places
    .filter(({ isFor }) => isSearch && isFor(me))
    .map(({ to, label }) => ({ id: to, name: label, kind: 'Page', target: { to } }))
  const ofProjects: Entry[] = (projects.data?.rows ?? []).map(({ id, name, status }) => ({
    id,
    name,
    also: id,
    kind: status === 'archived' ? 'Archived project' : 'Project',
    target: { to: '/projects/$projectId', params: { projectId: id } },
  }))
  const ofMembers: Entry[] = (members.data?.rows ?? []).map(({ id, name, email }) => ({
    id,
    name,
    also: email,
    kind: 'Member',
    target: { to: '/members', search: { email } },
  }))
  const ofKeys: Entry[] = (keys.data?.rows ?? []).map(({ id, name, redacted_value: value }) => ({
    id,
    name,
    also: `${id} ${value}`,
    kind: 'Key of this project',
    target: { to: '/projects/$projectId/keys', params: { projectId: projectId ?? '' } },
  }))
  const isReading = [projects, members, keys].some(({ isLoading }) => isLoading)
  return {
    entries: [...pages, ...ofProjects, ...ofKeys, ...(isSearch ? ofMembers : [])],
    isReading,
  }
}
