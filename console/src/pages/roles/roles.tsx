import { useQuery } from '@tanstack/react-query'

import type { Item } from '#api/operations.ts'
import { rolesQuery } from '#pages/members/queries.ts'
import { nameOfRole } from '#pages/members/role-names.ts'
import { Card, Page } from '#parts/page.tsx'
import { Read } from '#parts/read.tsx'

import { permissionNames, permissionWords } from './permission-words.ts'

type RoleItem = Item<'GET /v1/organization/roles'>

/** What each role may do. */
export function Roles() {
  const query = useQuery(rolesQuery)
  return (
    <Page
      title="Roles"
      sub="What members may do in the whole organization. Roles cannot be changed; a member has one."
    >
      <div className="stack">
        <Read query={query} rows={12}>
          {({ data }) => (
            <>
              <Card title="What each is for">
                <dl className="facts">
                  {data.map(({ id, description }) => (
                    <Meaning key={id} name={nameOfRole(id)} text={description} />
                  ))}
                </dl>
              </Card>
              <Matrix roles={data} />
            </>
          )}
        </Read>
      </div>
    </Page>
  )
}

function Meaning({ name, text }: { name: string; text: string }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{text}</dd>
    </>
  )
}

function Matrix({ roles }: { roles: readonly RoleItem[] }) {
  const used = permissionNames.filter((permission) =>
    roles.some(({ permissions }) => permissions.includes(permission)),
  )
  return (
    <Card className="list">
      <div className="matrix-box" tabIndex={0} role="group" aria-label="Permissions by role">
        <table className="matrix">
          <caption className="visually-hidden">Permissions by role</caption>
          <thead>
            <tr>
              <th scope="col">Permission</th>
              {roles.map(({ id }) => (
                <th scope="col" key={id}>
                  {nameOfRole(id)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {used.map((permission) => (
              <tr key={permission}>
                <th scope="row" title={permission}>
                  {permissionWords[permission]}
                </th>
                {roles.map(({ id, permissions }) => (
                  <Mark key={id} isAllowed={permissions.includes(permission)} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  )
}

function Mark({ isAllowed }: { isAllowed: boolean }) {
  return (
    <td className={isAllowed ? 'yes' : 'no'}>
      <span aria-hidden="true">{isAllowed ? '✓' : '–'}</span>
      <span className="visually-hidden">{isAllowed ? 'yes' : 'no'}</span>
    </td>
  )
}
