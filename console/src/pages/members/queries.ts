import { queryOptions } from '@tanstack/react-query'

import { call } from '#api/call.ts'
import { listQuery } from '#api/list-query.ts'

/** The members of the organization; all of them, or the one with an address. */
export const membersQuery = ({ email }: { email?: string | undefined }) =>
  listQuery(['members', email ?? null], (page, signal) =>
    call(
      'GET /v1/organization/members',
      { query: { ...page, ...(email !== undefined && { email }) } },
      { signal },
    ),
  )

export const rolesQuery = queryOptions({
  queryKey: ['roles'],
  queryFn: ({ signal }) => call('GET /v1/organization/roles', {}, { signal }),
  // They change with releases only.
  staleTime: Infinity,
})
