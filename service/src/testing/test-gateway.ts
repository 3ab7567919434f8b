import { randomBytes } from 'node:crypto'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import type { CredentialKind, Endpoint } from '@gatehouse/contract/endpoint'
import type { Dialect } from '@gatehouse/contract/error-body'
import { defaultProjectKeyPermissions, type Permission } from '@gatehouse/contract/permission'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import type { FastifyInstance } from 'fastify'
import { vi } from 'vitest'
import { z } from 'zod'

import { guard } from '#access/guard.ts'
import { type KeyCreation, type KeyOwner, makeKey } from '#access/keys/make-key.ts'
import { createOrganization } from '#access/manage-organizations.ts'
import { insertProject } from '#access/projects/project-store.ts'
import { assemble, type House } from '#assemble.ts'
import { loadConfig } from '#config.ts'
import { bind } from '#http/bind.ts'
import { setErrorDialect } from '#http/error-dialect.ts'
import { createServer as createHttpServer } from '#http/server.ts'
import type { Clock } from '#platform/clock.ts'
import { createId } from '#platform/id.ts'
import { createLog } from '#platform/log.ts'
import { transact } from '#platform/transaction.ts'

/** A clock that moves only when `pass` is called. */
export function createTestClock() {
  let nowMs = Date.parse('2026-06-01T12:00:00Z')
  return {
    now: () => new Date(nowMs),
    pass(ms: number) {
      nowMs += ms
    },
  }
}

/** Limits that no test reaches by accident. */
export const generousLimits = {
  ADMIN_REQUESTS_PER_MINUTE: '1000000',
  ADMIN_REQUESTS_PER_MINUTE_ORGANIZATION: '1000000',
  ADMIN_CONCURRENT_REQUESTS: '256',
  GATEWAY_SAVES_PER_MINUTE: '1000000',
}

export const masterKey = (version: number) => `${version}:${randomBytes(32).toString('base64')}`

const Caller = z.object({
  kind: z.string(),
  organization_id: z.string(),
  project_id: z.string().nullable(),
  credential_id: z.string(),
  permissions: z.array(z.string()),
})

type TestEndpoint = {
  dialect: Dialect
  credentials: readonly CredentialKind[]
  permission: Permission
}

const invoke = { credentials: ['project_key', 'jwt'], permission: 'model.invoke' } as const

/** One per error dialect, realm and kind of credential. */
const testEndpoints = {
  '/v1/models': { ...invoke, dialect: 'openai' },
  '/v1/messages': { ...invoke, dialect: 'messages' },
  '/v1/messages/count_tokens': { ...invoke, dialect: 'count_tokens' },
  '/v1/responses': { ...invoke, dialect: 'responses' },
  '/api/policy-gateway/config': {
    ...invoke,
    dialect: 'admin',
    permission: 'policy_gateway.read',
  },
  '/v1/organization/policies': {
    credentials: ['admin_key'],
    dialect: 'admin',
    permission: 'policies.read',
  },
} as const satisfies Record<string, TestEndpoint>
export type TestPath = keyof typeof testEndpoints

/** Serves an endpoint that answers with its caller, behind the real guard. */
function serveCaller(app: FastifyInstance, house: House, path: TestPath) {
  const testEndpoint: TestEndpoint = testEndpoints[path]
  const endpoint = {
    ...testEndpoint,
    id: path,
    summary: 'Describes the caller.',
    method: 'GET',
    path,
    response: Caller,
    bodyLimitBytes: 1024,
    successStatus: 200,
    errors: [],
    isIdempotent: false,
  } as const satisfies Endpoint
  void app.register(async (scope) => {
    setErrorDialect(scope, endpoint.dialect, house)
    guard(scope, house.access.authentication)
    bind(scope, endpoint, (_, { principal }) => ({
      kind: principal.kind,
      organization_id: principal.organizationId,
      project_id: principal.projectId,
      credential_id: principal.credentialId,
      permissions: [...principal.permissions],
    }))
  })
}

type Options = {
  databaseUrl: string
  now: Clock
  steadyNow?: Clock
  environment?: Record<string, string>
}
type CallOptions = { headers?: Record<string, string>; from?: string }

/** A complete house behind a server whose only endpoints answer with their caller. */
export async function createTestGateway(options: Options) {
  const { databaseUrl, environment, ...clocks } = options
  const lines: string[] = []
  const config = loadConfig({
    DATABASE_URL: databaseUrl,
    MASTER_KEYS: masterKey(1),
    ...environment,
  })
  const log = createLog('info', { write: (line) => lines.push(line) })
  const house = assemble(config, { ...clocks, log })
  const app = createHttpServer({ ...house, trustedProxies: [], connectionsMax: 100 })
  for (const path of Object.keys(testEndpoints)) serveCaller(app, house, path as TestPath)
  // The first poll clears the caches; tests begin after it.
  await vi.waitUntil(house.follower.lastPollAt, { timeout: 5000, interval: 5 })
  return {
    house,
    lines,
    call: (path: TestPath, { headers = {}, from = '192.0.2.1' }: CallOptions = {}) =>
      app.inject({ method: 'GET', url: path, headers, remoteAddress: from }),
    async [Symbol.asyncDispose]() {
      await app.close()
      await house.stop()
    },
  }
}
export type TestGateway = Awaited<ReturnType<typeof createTestGateway>>

export const createTenant = async (house: House) => createOrganization('Tenant', house)

export async function createProjectKey(
  house: House,
  { organizationId, projectId }: { organizationId: string; projectId: string },
  creation: Partial<KeyCreation> = {},
  owner: KeyOwner | null = null,
) {
  const complete = { name: 'Key', permissions: defaultProjectKeyPermissions, ...creation }
  const { row, value } = await transact(house.db, (tx) =>
    makeKey(tx, { organizationId, projectId }, complete, { ...house, now: house.now(), owner }),
  )
  return { id: row.id, value, headers: { authorization: `Bearer ${value}` } }
}

export async function createProject(house: House, organizationId: string): Promise<string> {
  const id = createId('proj', house.now())
  const project = { id, name: 'Another', isDefault: false, managedBy: null, createdAt: house.now() }
  await transact(house.db, (tx) => insertProject(tx, organizationId, project))
  return id
}

/** A TCP proxy in front of PostgreSQL that tests can shut and reopen to simulate an outage. */
export async function createDatabaseProxy(databaseUrl: string) {
  const url = new URL(databaseUrl)
  const target = { host: url.hostname, port: Number(url.port || 5432) }
  const sockets = new Set<Socket>()
  let lastByteAtMs = 0
  const server = createServer((near) => {
    const far = connect(target)
    for (const [socket, other] of [[near, far] as const, [far, near] as const]) {
      sockets.add(socket)
      socket.on('data', (chunk) => {
        lastByteAtMs = performance.now()
        other.write(chunk)
      })
      socket.on('error', () => undefined)
      socket.on('close', () => {
        sockets.delete(socket)
        other.destroy()
      })
    }
  })
  const listen = (port: number) =>
    new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  await listen(0)
  const { port } = server.address() as AddressInfo
  url.host = `127.0.0.1:${port}`

  async function shut() {
    // Waits for a pause between two queries; other tests cover interrupted queries.
    await waitUntil(() => performance.now() - lastByteAtMs > 50)
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    await closed
    await sleep(50) // until the other side has noticed
  }
  return {
    url: url.toString(),
    /** Breaks every connection and refuses new ones. */
    shut,
    reopen: () => listen(port),
    async [Symbol.asyncDispose]() {
      if (server.listening) await shut()
    },
  }
}
