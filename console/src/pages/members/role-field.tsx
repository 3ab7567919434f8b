import type { Role } from '@gatehouse/contract/role'
import { useQuery } from '@tanstack/react-query'

import { Read } from '#parts/read.tsx'
import { useMe } from '#session/me.ts'

import { rolesQuery } from './queries.ts'
import { nameOfRole } from './role-names.ts'

/** The roles that the person may give, each with what it is for. */
export function RoleField({ role }: { role: Role }) {
  const me = useMe()
  const query = useQuery(rolesQuery)
  const held = new Set<string>(me.permissions)
  return (
    <fieldset>
      <legend>Role</legend>
      <Read query={query} rows={8}>
        {({ data }) =>
          data
            .filter(({ id, permissions }) => {
              const isMine = permissions.every((permission) => held.has(permission))
              return isMine && (id !== 'owner' || me.role !== 'admin')
            })
            .map(({ id, description }) => (
              <label className="check" key={id}>
                <input type="radio" name="role" value={id} defaultChecked={id === role} />
                <span>
                  {nameOfRole(id)}
                  <span className="hint">{description}</span>
                </span>
              </label>
            ))
        }
      </Read>
    </fieldset>
  )
}

/** The roles of the form are those that the gateway has listed. */
export const readRole = (form: FormData): Role => form.get('role') as Role
