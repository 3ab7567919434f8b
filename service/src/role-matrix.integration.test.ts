import { readFileSync } from 'node:fs'

import type { Endpoint } from '@gatehouse/contract/endpoint'
import { endpoints } from '@gatehouse/contract/endpoints'
import { Role } from '@gatehouse/contract/role'
import { expect, test } from 'vitest'

import { createMemberSession } from '#testing/member-session.ts'
import { createTestApi } from '#testing/test-api.ts'

// The table of roles and endpoints in the specification, compared with the service cell by cell, by members who have signed
// in. Next to nothing is changed: the ids of the requests name nothing, and most bodies are empty.

const page = new URL('../../docs/specification/authentication.md', import.meta.url)
const begin = '<!-- roles: printed by ./dev generate -->'

type Table = { roles: Role[]; rows: { name: string; cells: string[] }[] }

function readTable(): Table {
  const [, text = ''] = readFileSync(page, 'utf8').split(begin)
  const [heading = [], , ...rows] = (text.split('<!-- end of roles -->')[0] ?? '')
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim().replaceAll('`', '')),
    )
  return {
    roles: heading.slice(1).map((role) => Role.parse(role)),
    rows: rows.map(([name = '', ...cells]) => ({ name, cells })),
  }
}

const table = readTable()
const all: readonly Endpoint[] = endpoints
const nameOf = ({ method, path }: Endpoint) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`
const withSessions = all.filter(({ credentials }) => credentials.some((kind) => kind === 'session'))

test('the table has every role, and every endpoint that takes sessions', () => {
  expect(table.roles).toEqual(Role.options)
  expect(table.rows.map(({ name }) => name)).toEqual(withSessions.map(nameOf))
  expect(table.rows.length).toBeGreaterThan(60)
})

const noId = 'none_00000000000000000000000000'
const paramsOf = ({ params }: Endpoint) =>
  Object.fromEntries(Object.keys(params?.shape ?? {}).map((name) => [name, noId]))

/** Requests that need more than the endpoint itself: the first for which the contract says so. */
const furtherBodies: readonly object[] = [{ persist: true }]
const furtherBodyOf = ({ furtherPermissions = [] }: Endpoint) =>
  furtherBodies.find((body) => furtherPermissions.some((each) => each.isNeeded(body)))

type Sent = { credential: string; params: Record<string, string>; body: object }

test('every cell is what the service does', async () => {
  const api = await createTestApi()
  const { organizationId } = api.organization
  const signInAs = (role: Role) => createMemberSession(api.house, { organizationId, role })
  const signIn = async (role: Role) => (await signInAs(role)).token
  const sessions = new Map<Role, string>()
  for (const role of table.roles) sessions.set(role, await signIn(role))

  async function isAllowed(endpoint: Endpoint, role: Role, body: object) {
    // Every member may sign out, so what needs no permission gets a session of its own.
    const credential = endpoint.permission === 'any' ? await signIn(role) : sessions.get(role)!
    return isPermitted(endpoint, role, { credential, params: paramsOf(endpoint), body })
  }

  /** With the ids of the caller, who may have no session afterwards. */
  async function isAllowedForSelf(endpoint: Endpoint, role: Role) {
    const { memberId, sessionId, token } = await signInAs(role)
    const own = { ...paramsOf(endpoint), member_id: memberId, session_id: sessionId }
    return isPermitted(endpoint, role, { credential: token, params: own, body: {} })
  }

  async function isPermitted(endpoint: Endpoint, role: Role, { body, ...sent }: Sent) {
    const isRead = endpoint.method === 'GET'
    const answer = await api.send(endpoint, isRead ? sent : { ...sent, body })
    const code = answer.status < 400 ? undefined : answer.body.error.code
    const shown = `${role}: ${nameOf(endpoint)}: ${answer.status} ${code}`
    expect([401, 405, 429, 500, 503], shown).not.toContain(answer.status)
    expect(code, shown).not.toBe('route_not_found')
    return code !== 'permission_denied'
  }

  async function cellOf(endpoint: Endpoint, role: Role) {
    if (!(await isAllowed(endpoint, role, {}))) {
      return endpoint.orSelf && (await isAllowedForSelf(endpoint, role)) ? '(✓)' : '–'
    }
    const further = furtherBodyOf(endpoint)
    if (endpoint.furtherPermissions) expect(further, `a body for ${endpoint.id}`).toBeDefined()
    if (further && !(await isAllowed(endpoint, role, further))) return '(✓)'
    return '✓'
  }

  const found: Table['rows'] = []
  for (const endpoint of withSessions) {
    const cells: string[] = []
    for (const role of table.roles) cells.push(await cellOf(endpoint, role))
    found.push({ name: nameOf(endpoint), cells })
  }
  expect(found).toEqual(table.rows)
  const all = found.flatMap(({ cells }) => cells)
  for (const cell of ['✓', '(✓)', '–']) expect(all).toContain(cell)
})
