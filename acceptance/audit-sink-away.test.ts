import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { ExportSink } from '@gatehouse/contract/exports/export-sink'
import { startAllDoubles } from '@gatehouse/tools/destinations/all-doubles'
import type { DoubleRequest } from '@gatehouse/tools/destinations/double'
import { createTenants, type Tenant } from '@gatehouse/tools/start-stack'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'

import { createArrivals } from './support/audit/arrivals.ts'
import { writeBulk } from './support/audit/bulk-events.ts'
import {
  createSinks,
  drainDoubles,
  exportSettings,
  findDoubleProblems,
  readSinks,
  type SinkType,
  sinkTypes,
} from './support/audit/sinks.ts'
import { createRandom } from './support/credits/calls.ts'
import { useStack } from './support/use-stack.ts'

// One destination is away for a while. The sinks of the others get everything meanwhile, and it catches up afterwards.

const away: SinkType = 'splunk_hec'
const others = sinkTypes.filter((type) => type !== away)
const roundEvents = 500
const eventually = { timeout: 120_000, interval: 100 }

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-sink-away-'))
const doubles = await startAllDoubles()
const stack = useStack({ models: null, environment: await exportSettings(doubles, folder) })
const arrivals = createArrivals()
const draining = setInterval(() => drainDoubles(doubles, arrivals), 20)
let tenant: Tenant

afterAll(async () => {
  clearInterval(draining)
  await doubles[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

beforeAll(async () => {
  const [made] = await createTenants(stack().service, 1)
  tenant = made!
  await createSinks(caller(), doubles)
  await writeEvents()
  await untilPending(sinkTypes, 0)
})

const caller = () => ({ baseUrl: stack().description.base_url, credential: tenant.admin_key })

async function readSink(type: SinkType): Promise<ExportSink> {
  const sinks = await readSinks(caller())
  return sinks.find((sink) => sink.type === type)!
}

/** The ids of events whose transaction has committed. */
const acknowledged: string[] = []
const writeEvents = () =>
  writeBulk(
    {
      url: stack().database.url,
      organizations: [tenant.organization_id],
      events: roundEvents,
      random: createRandom(7),
      allowed: () => roundEvents,
      onAcknowledged: (ids) => acknowledged.push(...ids),
    },
    2,
  )

const lastOf = (type: SinkType) => arrivals.sinkOf(tenant.organization_id, type)?.last ?? 0
const haveAll = (types: readonly SinkType[]) =>
  types.every((type) =>
    acknowledged.every((id) => (arrivals.numberOf(id) ?? Infinity) <= lastOf(type)),
  )

async function untilPending(types: readonly SinkType[], count: number) {
  await vi.waitUntil(() => haveAll(types), eventually)
  const isSo = async () =>
    (await readSinks(caller())).every(
      (sink) => !types.includes(sink.type as SinkType) || sink.pending_events === count,
    )
  await vi.waitUntil(isSo, eventually)
}

/** As a proxy would that repeats what it was sent. */
const unavailable = ({ headers }: DoubleRequest) => ({
  status: 503,
  headers: { 'retry-after': '1', 'content-type': 'text/plain' },
  body: `Busy: ${headers.authorization}`,
})

test.each([
  ['ends connections', () => 'reset' as const],
  ['answers 503 with Retry-After', unavailable],
])('while a destination %s, the others get everything', async (_, intervention) => {
  const before = lastOf(away)
  let attempts = 0
  doubles[away].double.intervene((request) => {
    attempts++
    return intervention(request)
  })
  await writeEvents()
  await untilPending(others, 0)
  expect(lastOf(away)).toBe(before)
  await vi.waitUntil(() => attempts >= 2, eventually)
  await vi.waitUntil(async () => (await readSink(away)).lag_seconds > 0, eventually)
  const sink = await readSink(away)
  expect(sink).toMatchObject({ state: 'retrying', dead_letters: 0 })
  expect(sink.pending_events).toBeGreaterThanOrEqual(roundEvents)
  expect(sink.last_error).not.toBeNull()
  expect(sink.last_error).not.toContain('example-splunk-token')
  expect(sink.last_error_at).not.toBeNull()
})

test('its error says what the destination answered', async () => {
  expect((await readSink(away)).last_error).toContain('503')
})

test('when it is back, it catches up, in order and with nothing missing', async () => {
  const backAtMs = Date.now()
  doubles[away].double.intervene(undefined)
  await untilPending(sinkTypes, 0)
  const sink = await readSink(away)
  expect(sink).toMatchObject({ state: 'ok', lag_seconds: 0, pending_events: 0, dead_letters: 0 })
  expect(Date.parse(sink.last_success_at ?? '')).toBeGreaterThan(backAtMs - 1000)
  expect(acknowledged).toHaveLength(3 * roundEvents)
  expect(arrivals.findings).toEqual([])
  expect(findDoubleProblems(doubles)).toEqual([])
})
