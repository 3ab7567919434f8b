import { readdir } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

import { createClient } from '@gatehouse/contract/client'
import { readGatewayRollout, saveGatewayConfig } from '@gatehouse/contract/policy-gateway/gateway'
import type { Answered } from '@gatehouse/tools/scripted-upstream/call'
import { startScriptedUpstream } from '@gatehouse/tools/scripted-upstream/server'
import { type ApiProcess, stopProcess } from '@gatehouse/tools/service-process'
import { createTenants, type Stack, startStack, type Tenant } from '@gatehouse/tools/start-stack'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { type ThrowawayRedis, startThrowawayRedis } from '@gatehouse/tools/throwaway-redis'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { countHolds } from './support/credits/books.ts'
import { crashModels, createRandom } from './support/credits/calls.ts'
import { hardlyLimited } from './support/hardly-limited.ts'

// Many clients send more than their quotas allow, while processes are killed and, for some organizations, Redis is emptied.
// Quotas are compared with what the upstream has served, what clients were told, and what the database has.
// QUOTA_SEED repeats the kills.

const seed = Number(process.env['QUOTA_SEED'] ?? Date.now() % 2 ** 31)
const random = createRandom(seed)
const processes = 3
const kills = 10
const clients = 12
const burstMs = 6000
const flushes = 3
const leaseMs = 60_000
const limits = hardlyLimited()

/** Of every key as a user, and of every project. */
const quota = { requests: 150, tokens: 6000 }
/** Calls of an organization that reaches the one, and of one that reaches the other. */
const kinds = {
  requests: { max_tokens: 10, usage: { input: 5, output: 5 } },
  tokens: { max_tokens: 150, usage: { input: 5, output: 75 } },
} as const
type Kind = keyof typeof kinds
/** The most that a call reserves: its output, and the estimate of its short input. */
const reservedMax = { requests: 1, tokens: kinds.tokens.max_tokens + 150 }

type Organization = { id: string; key: string; kind: Kind; isEmptied: boolean }
type Usage = { requests: number; tokens: number; credits: number }
type Row = { scope: string } & Usage

let redis: ThrowawayRedis
let upstream: Awaited<ReturnType<typeof startScriptedUpstream>>
let stack: Stack
let running: (ApiProcess | undefined)[]
let organizations: Organization[]
const served: Answered[] = []
const answers: { organization: string; status: number; reason: string | undefined }[] = []
const stored = new Map<string, { rows: Row[]; ledgerTokens: number; events: number }>()
let killed = 0
let lastKillAtMs = 0

beforeAll(async () => {
  console.log(`quotas with killed processes: seed ${seed}`)
  await startEverything()
  await hammerAndKill()
  await untilZero(() => countHolds(stack.database.url))
  await untilZero(countSettlementFiles)
  await sleep(Math.max(0, lastKillAtMs + leaseMs + 2000 - Date.now()))
  // What killed calls reserved is free again by now: what is left can be used up.
  for (const organization of organizations) await useUp(organization)
  await readStored()
  report()
}, 600_000)
afterAll(async () => {
  await stack?.stop()
  await upstream?.stop()
  await redis?.stop()
})

async function startEverything() {
  redis = await startThrowawayRedis()
  upstream = await startScriptedUpstream({ onAnswered: (answered) => served.push(answered) })
  stack = await startStack({
    processes,
    redis: redis.url,
    models: () => crashModels(upstream.url, 3),
    environment: {
      ...limits,
      CREDIT_HOLD_GRACE_SECONDS: '5',
      REDIS_DEADLINE_MS: '1000',
    },
  })
  running = [...stack.apis]
  const tenants = await createTenants(stack.service, 6)
  organizations = tenants.map((tenant, index) => ({
    id: tenant.organization_id,
    key: tenant.project_key,
    kind: index % 2 === 0 ? 'requests' : 'tokens',
    isEmptied: index >= 4,
  }))
  await Promise.all(tenants.map(saveQuotas))
}

/** Saves the quotas of an organization; they are in force in every process afterwards. */
async function saveQuotas({ admin_key }: Tenant) {
  const client = createClient({ baseUrl: stack.apis[0]!.baseUrl, credential: admin_key })
  const window = 'monthly' as const
  const org_controls = {
    user_quotas: true,
    user_quota: { window, requests: quota.requests },
    project_quota: { window, tokens: quota.tokens },
  }
  await client.call(saveGatewayConfig, { body: { config: { org_controls } } })
  await waitUntil(async () => (await client.call(readGatewayRollout, {})).is_applied)
}

/** One organization after the other, so that every quota is reached while processes are killed. */
async function hammerAndKill() {
  const killing = killRepeatedly()
  for (const organization of organizations) {
    const untilMs = Date.now() + burstMs
    const client = async () => {
      while (Date.now() < untilMs) await call(organization)
    }
    await Promise.all([
      ...Array.from({ length: clients }, client),
      organization.isEmptied ? emptyRedis() : undefined,
    ])
  }
  await killing
}

async function emptyRedis() {
  for (let flush = 0; flush < flushes; flush++) {
    await sleep(300 + random(300))
    await redis.command('FLUSHALL')
  }
}

async function killRepeatedly() {
  const startedAtMs = Date.now()
  const everyMs = (burstMs * 4) / kills
  while (killed < kills) {
    const dueAtMs = startedAtMs + killed * everyMs + random(everyMs / 2)
    await sleep(Math.max(0, dueAtMs - Date.now()))
    const index = random(processes)
    const victim = running[index]
    if (!victim) continue
    running[index] = undefined
    await stopProcess(victim.child, 'SIGKILL')
    lastKillAtMs = Date.now()
    killed++
    running[index] = await stack.startApi(`again-${killed}`)
  }
}

/** Like a load balancer: dead processes get no calls. */
async function call(organization: Organization) {
  const alive = running.filter((each) => each !== undefined)
  const process = alive[random(alive.length)]
  if (!process) return sleep(20)
  const { max_tokens, usage } = kinds[organization.kind]
  const script = { key: organization.id, text: 'Yes.', usage, headMs: 20 + random(150) }
  try {
    const response = await fetch(`${process.baseUrl}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${organization.key}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({
        model: 'crash-1',
        max_tokens,
        messages: [{ role: 'user', content: `#script ${JSON.stringify(script)}` }],
      }),
    })
    const { policy } = (await response.json()) as { policy?: { reason_code: string } }
    const reason = policy?.reason_code
    answers.push({ organization: organization.id, status: response.status, reason })
    if (response.status !== 200) await sleep(10)
    return reason
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    answers.push({ organization: organization.id, status: 0, reason: undefined })
    return sleep(10)
  }
}

async function useUp(organization: Organization) {
  for (let tries = 0; tries < 2 * quota.requests; tries++) {
    if (typeof (await call(organization)) === 'string') return
  }
}

async function untilZero(count: () => Promise<number>) {
  for (const deadline = Date.now() + 60_000; Date.now() < deadline;) {
    if ((await count()) === 0) return
    await sleep(250)
  }
}

async function countSettlementFiles(): Promise<number> {
  const names = await readdir(stack.folder, { recursive: true })
  return names.filter((name) => name.includes('settlements-') || name.includes('events-')).length
}

async function readStored() {
  const database = new pg.Client({ connectionString: stack.database.url })
  await database.connect()
  for (const { id } of organizations) {
    const usage = await database.query<Row>(
      `select scope, sum(requests)::int as requests, sum(tokens)::int as tokens, sum(credits)::int as credits
       from quota_usage where organization_id = $1 group by scope order by scope`,
      [id],
    )
    const ledger = await database.query<{ tokens: number }>(
      `select coalesce(sum((meta->>'input_tokens')::int + (meta->>'output_tokens')::int), 0)::int as tokens
       from ledger_entry where organization_id = $1 and kind in ('usage', 'late_usage')`,
      [id],
    )
    const events = await database.query<{ count: number }>(
      `select count(distinct header->>'request_id')::int as count from event
       where organization_id = $1 and header ? 'quotas'`,
      [id],
    )
    stored.set(id, {
      rows: usage.rows,
      ledgerTokens: ledger.rows[0]!.tokens,
      events: events.rows[0]!.count,
    })
  }
  await database.end()
}

const storedOf = ({ id, kind }: Organization) => {
  const { rows } = stored.get(id)!
  return rows.find(({ scope }) => scope === (kind === 'requests' ? 'user' : 'project'))!
}
const servedFor = ({ id }: Organization) => served.filter(({ key }) => key === id).length
const withStatus = ({ id }: Organization, status: number) =>
  answers.filter((answer) => answer.organization === id && answer.status === status).length

function report() {
  const statuses = Map.groupBy(answers, ({ status }) => status)
  console.log(
    `kills ${killed}, answers`,
    [...statuses].map(([status, all]) => `${status}: ${all.length}`).join(', '),
  )
  for (const each of organizations) {
    const { requests, tokens } = storedOf(each)
    const name = `${each.kind}${each.isEmptied ? ', Redis emptied' : ''}`
    console.log(
      `${name}: served ${servedFor(each)}, answered ${withStatus(each, 200)}, stored ${requests} requests, ${tokens} tokens`,
    )
  }
}

const steady = () => organizations.filter(({ isEmptied }) => !isEmptied)
const emptied = () => organizations.filter(({ isEmptied }) => isEmptied)

test('ten processes were killed under load, and calls were served, refused by quotas, or cut off', () => {
  expect(killed).toBe(kills)
  const expected = [0, 200, 429, 503]
  expect(answers.filter(({ status }) => !expected.includes(status))).toEqual([])
  expect(
    new Set(answers.filter(({ status }) => status === 429).map(({ reason }) => reason)),
  ).toEqual(new Set(['USER_QUOTA_EXCEEDED', 'PROJECT_QUOTA_EXCEEDED']))
})

test('no quota is exceeded: neither by calls that were served nor by what is stored', () => {
  for (const organization of steady()) {
    const { requests, tokens } = storedOf(organization)
    const of = organization.kind
    expect(servedFor(organization), of).toBeLessThanOrEqual(quota.requests)
    expect(withStatus(organization, 200), of).toBeLessThanOrEqual(servedFor(organization))
    expect(requests, of).toBeLessThanOrEqual(quota.requests)
    expect(tokens, of).toBeLessThanOrEqual(quota.tokens)
  }
})

test('no quota is lost: what killed calls reserved can be used again', () => {
  for (const organization of steady()) {
    const { kind } = organization
    const left = quota[kind] - storedOf(organization)[kind]
    // A call whose process died before it held credits leaves nothing in the database.
    const killedBeforeHold = kind === 'requests' ? kills : 0
    expect(left, kind).toBeLessThan(reservedMax[kind] + killedBeforeHold)
  }
})

test('after the sweep what is stored equals the events and the ledger', () => {
  for (const organization of organizations) {
    const { rows, ledgerTokens, events } = stored.get(organization.id)!
    expect(rows.map(({ scope }) => scope)).toEqual(['project', 'user'])
    for (const { requests, tokens } of rows) {
      expect([requests, tokens]).toEqual([events, ledgerTokens])
    }
  }
})

test('when Redis is emptied, a quota is exceeded by what was in flight at most', () => {
  const inFlight = flushes * clients
  for (const organization of emptied()) {
    const { kind } = organization
    const beyond = storedOf(organization)[kind] - quota[kind]
    expect(beyond, kind).toBeLessThanOrEqual(inFlight * reservedMax[kind])
    expect(beyond, kind).toBeGreaterThan(-reservedMax[kind] - kills - inFlight * reservedMax[kind])
  }
})
