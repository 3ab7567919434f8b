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

/** Where a member is signed in. A member has at most 20 sessions, which are one page. */
export const sessionsQuery = (memberId: string) =>
  queryOptions({
    queryKey: ['sessions', memberId],
    queryFn: ({ signal }) =>
      call(
        'GET /v1/organization/members/:member_id/sessions',
        { params: { member_id: memberId } },
        { signal },
      ),
  })

export const rolesQuery = queryOptions({
  queryKey: ['roles'],
  queryFn: ({ signal }) => call('GET /v1/organization/roles', {}, { signal }),
  // They change with releases only.
  staleTime: Infinity,
})
