import { queryOptions, useQuery } from '@tanstack/react-query'

import { call } from '#api/call.ts'
import { listQuery } from '#api/list-query.ts'

export const projectsQuery = listQuery(['projects'], (page, signal) =>
  call('GET /v1/organization/projects', { query: page }, { signal }),
)

export const projectQuery = (id: string) =>
  queryOptions({
    queryKey: ['project', id],
    queryFn: ({ signal }) =>
      call('GET /v1/organization/projects/:project_id', { params: { project_id: id } }, { signal }),
  })

export const keysQuery = (projectId: string) =>
  listQuery(['keys', projectId], (page, signal) =>
    call(
      'GET /v1/organization/projects/:project_id/api_keys',
      { params: { project_id: projectId }, query: page },
      { signal },
    ),
  )

export const projectMembersQuery = (projectId: string) =>
  listQuery(['project-members', projectId], (page, signal) =>
    call(
      'GET /v1/organization/projects/:project_id/members',
      { params: { project_id: projectId }, query: page },
      { signal },
    ),
  )

export const modelsQuery = queryOptions({
  queryKey: ['models'],
  queryFn: ({ signal }) => call('GET /v1/organization/models', {}, { signal }),
})

/** The name of the project that is open, if one is. Its pages have read it already. */
export function useProjectName(id: string | undefined): string | undefined {
  const { data } = useQuery({ ...projectQuery(id ?? ''), enabled: id !== undefined })
  return id === undefined ? undefined : data?.name
}
