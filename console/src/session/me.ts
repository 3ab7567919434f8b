import type { Me } from '@gatehouse/contract/members/me'
import type { Permission } from '@gatehouse/contract/permission'
import { queryOptions, useSuspenseQuery } from '@tanstack/react-query'

import { call, setCsrfToken } from '#api/call.ts'

/** How often an open page asks whether its session goes on. */
export const watchMs = 10_000

/** Who has signed in. Every page needs it, so it is read first. */
export const meQuery = queryOptions({
  queryKey: ['me'],
  async queryFn({ signal }): Promise<Me> {
    const me = await call('GET /v1/organization/me', {}, { signal })
    setCsrfToken(me.csrf_token)
    return me
  },
  staleTime: watchMs,
})

export const useMe = (): Me => useSuspenseQuery(meQuery).data

/** Whether a person may do what needs a permission. What is refused anyway is not offered. */
export const may = (me: Me, permission: Permission): boolean => me.permissions.includes(permission)

/** Whether changes are possible at all: the operator can make the console read only. */
export const mayChange = (me: Me, permission: Permission): boolean =>
  !me.read_only && may(me, permission)

export const projectRoleOf = (me: Me, projectId: string) =>
  me.projects.find(({ id }) => id === projectId)?.role ?? null
