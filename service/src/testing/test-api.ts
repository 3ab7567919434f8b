import { buildUrl } from '@gatehouse/contract/client'
import type { Endpoint } from '@gatehouse/contract/endpoint'
import type { Page } from '@gatehouse/contract/pages/pages'
import { scriptedModeration } from '@gatehouse/tools/scripted-moderation'
import { startDatabaseTap } from '@gatehouse/tools/testing/database-tap'
import { onTestFinished } from 'vitest'

import { createOrganization } from '#access/manage-organizations.ts'
import { assemble, type House } from '#assemble.ts'
import { loadConfig } from '#config.ts'
import { createServer } from '#http/server.ts'
import { type Clock, systemClock } from '#platform/clock.ts'
import type { FindAddresses } from '#platform/egress/find-addresses.ts'
import { serveRoutes } from '#routes.ts'

import { silentLog } from './silent-log.ts'
import { createTestDatabase } from './test-database.ts'
import { generousLimits, masterKey } from './test-gateway.ts'

type Sent = {
  credential?: string
  params?: Record<string, string>
  query?: Record<string, string>
  body?: object
  headers?: Record<string, string>
}

type Route = {
  method: string
  url: string
  endpoint: Endpoint | undefined
  page: Page | undefined
}

/** The whole API on a private database, with one organization; removed when the test ends. */
export async function createTestApi({
  now = systemClock,
  environment = {},
  findAddresses,
  tapped = false,
  change = (house: House): House => house,
}: {
  now?: Clock
  /** Settings; or how they follow from the id of the organization. */
  environment?: Record<string, string> | ((organizationId: string) => Record<string, string>)
  findAddresses?: FindAddresses
  /** Puts a proxy before the database that can break a transaction at any of its statements. */
  tapped?: boolean
  /** Replaces parts of the house before the routes are registered. */
  change?: (house: House) => House
} = {}) {
  const database = await createTestDatabase()
  const MASTER_KEYS = masterKey(1)
  const tap = tapped ? await startDatabaseTap(database.url) : null
  const configure = (settings: Record<string, string>) =>
    loadConfig({
      DATABASE_URL: tap?.url ?? database.url,
      MASTER_KEYS,
      LOG_LEVEL: 'silent',
      ...generousLimits,
      ...scriptedModeration,
      ...settings,
    })
  const earlier = typeof environment === 'function' ? await foundEarly(configure({})) : null
  const settings =
    typeof environment === 'function' ? environment(earlier!.organizationId) : environment
  const config = configure(settings)
  const house = change(
    assemble(config, {
      now,
      environment: settings,
      ...(findAddresses && { findAddresses }),
    }),
  )
  const app = createServer({
    ...house,
    trustedProxies: config.TRUSTED_PROXIES,
    connectionsMax: 100,
  })
  const routes: Route[] = []
  app.addHook('onRoute', ({ method, url, config }) => {
    const { endpoint, page } = config ?? {}
    for (const each of [method].flat()) routes.push({ method: each, url, endpoint, page })
  })
  serveRoutes(app, house, () => [])
  await app.ready()
  onTestFinished(async () => {
    await app.close()
    await house.stop()
    tap?.stop()
    await database[Symbol.asyncDispose]()
  })
  const organization = earlier ?? (await createOrganization('Example Ltd', house))
  const send = async (endpoint: Endpoint, sent: Sent = {}) => {
    const { credential = organization.adminKey, params, query, body, headers } = sent
    const response = await app.inject({
      method: endpoint.method,
      url: buildUrl('', endpoint.path, params, query),
      headers: { authorization: `Bearer ${credential}`, ...headers },
      ...(body && { payload: body }),
    })
    return { status: response.statusCode, headers: response.headers, body: response.json<Body>() }
  }
  const masterKeys = MASTER_KEYS
  return { app, house, db: database.db, tap, masterKeys, organization, routes, send }
}

/** The organization, made before the process starts whose settings name it. */
async function foundEarly(config: ReturnType<typeof loadConfig>) {
  const house = assemble(config)
  const organization = await createOrganization('Example Ltd', house)
  await house.stop()
  return organization
}

/** Loose on purpose: each test asserts the members it expects. */
type Body = {
  id: string
  value: string
  permissions: string[]
  data: { id: string; name: string }[]
  has_more: boolean
  first_id: string | null
  last_id: string | null
  error: { code: string; param: string | null; message: string }
}

/** The parts of another process, on the same database unless the settings say otherwise; stopped when the test ends. */
export function startAnotherHouse(
  { config: { DATABASE_URL } }: House,
  settings: Record<string, string>,
  now: Clock = systemClock,
) {
  const config = loadConfig({ DATABASE_URL, MASTER_KEYS: masterKey(1), ...settings })
  const house = assemble(config, { now, log: silentLog })
  let stopped: Promise<void> | undefined
  const stop = () => (stopped ??= house.stop())
  onTestFinished(stop)
  return { ...house, stop }
}
