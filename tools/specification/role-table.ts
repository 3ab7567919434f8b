import type { Endpoint } from '@gatehouse/contract/endpoint'
import { Role, rolePermissions } from '@gatehouse/contract/role'

/** What a role may do with an endpoint: everything, only some requests, or nothing. */
const cells = { all: '✓', some: '(✓)', none: '–' } as const
type RoleCell = (typeof cells)[keyof typeof cells]

/** Which role may call which endpoint of administration, as the contract says it. */
export function toRoleTable(endpoints: readonly Endpoint[]): string {
  const rows = endpoints.filter(takesSessions).map((endpoint) => {
    const path = endpoint.path.replaceAll(/:(\w+)/g, '{$1}')
    const found = Role.options.map((role) => cellOf(endpoint, role))
    return `| \`${endpoint.method} ${path}\` | ${found.join(' | ')} |`
  })
  const heading = `| Endpoint | ${Role.options.map((role) => `\`${role}\``).join(' | ')} |`
  return [heading, `|---|${Role.options.map(() => ':-:|').join('')}`, ...rows].join('\n')
}

const takesSessions = ({ credentials }: Endpoint) => credentials.some((kind) => kind === 'session')

function cellOf({ permission, furtherPermissions = [], orSelf }: Endpoint, role: Role): RoleCell {
  const held: readonly string[] = rolePermissions[role]
  if (permission === null || permission === 'any') return cells.all
  if (!held.includes(permission)) return orSelf ? cells.some : cells.none
  return furtherPermissions.every((each) => held.includes(each.permission)) ? cells.all : cells.some
}
