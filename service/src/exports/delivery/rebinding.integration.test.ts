import { type SinkConfig, sinkTypes, type SinkType } from '@gatehouse/contract/exports/sink-config'
import { sql } from 'kysely'
import { afterAll, expect, test } from 'vitest'

import type { DestinationDeps, DestinationType } from '#exports/destinations/destination.ts'
import { createDestinations } from '#exports/destinations/destinations.ts'
import { outcomeForSink } from '#exports/destinations/outcome-for-sink.ts'
import { configsAt } from '#exports/destinations/testing/configs.ts'
import { createItem } from '#exports/destinations/testing/records.ts'
import { sinkCalls } from '#exports/sinks/testing/sink-calls.ts'
import { createTenantEgress } from '#platform/egress.ts'
import { ssrfVectors } from '#platform/egress/testing/ssrf-vectors.ts'
import { answering, closeServers, openTraps } from '#platform/egress/testing/trap.ts'
import { createTestApi } from '#testing/test-api.ts'

import { caughtUp, openDelivery } from './testing/test-delivery.ts'

afterAll(closeServers)

const last_error = 'The host name leads to an address outside the public internet.'
const cases: { type: SinkType; what: 'endpoint' | 'login' }[] = [
  ...sinkTypes.map((type) => ({ type, what: 'endpoint' as const })),
  { type: 'azure_monitor', what: 'login' },
]

test('a host name that later leads to a private address is not called, whatever the type', async () => {
  const { ports, counts } = await openTraps()
  for (const { type, what } of cases) {
    const trap = `https://sink.example.com:${ports[0]}`
    const { api, doubles, createSink, readSink, startWorker, write } = await openDelivery({
      resolve: async () => [{ address: '127.0.0.1' }],
      findAddresses: async () => [],
      ports,
      ...(what === 'login' && { azureLoginUrl: trap }),
    })
    const id = await createSink(type)
    if (what === 'endpoint') {
      await sql`
        update export_sink set config = config || jsonb_build_object('endpoint', ${trap}::text)`.execute(
        api.db,
      )
    }
    await write(1)
    startWorker()
    await expect.poll(() => readSink(id), caughtUp).toMatchObject({ state: 'error', last_error })
    expect(doubles[type].double.received).toEqual([])
  }
  expect(counts).toEqual({ trapped: 0, answered: 0 })
}, 60_000)

const loggedIn = {
  status: 200,
  headers: {},
  body: Buffer.from('{"token_type":"Bearer","access_token":"token","expires_in":3600}'),
}
type Ports = Parameters<typeof ssrfVectors>[0]
const vectors = (ports: Ports) => ssrfVectors(ports).filter(({ call }) => call === undefined)

test.each(sinkTypes)('422: no way around the guard can be saved: %s', async (type) => {
  const ways = vectors([8088, 9200, 9243])
  expect(ways.length).toBeGreaterThan(150)
  let found: string[] = []
  const calls = sinkCalls(await createTestApi({ findAddresses: async () => found }))
  const saved = []
  for (const { name, address, turns = [] } of ways) {
    found = turns.at(-1) ?? []
    const { status, error } = await calls.create({ type, config: configsAt(address)[type] })
    if (status !== 422) saved.push([name, status])
    else expect([name, error.param]).toEqual([name, 'body.config.endpoint'])
  }
  expect(saved).toEqual([])
})

test.each(sinkTypes)(
  'no way around the guard is called, however it was saved: %s',
  async (type) => {
    const { ports, counts } = await openTraps()
    const destination = createDestinations()[type] as DestinationType<SinkConfig>
    const delivered = []
    for (const { name, address, turns = [['127.0.0.1']], privateTargets = [] } of vectors(ports)) {
      await using egress = createTenantEgress({ privateTargets, resolve: answering(...turns) })
      const request: DestinationDeps['request'] = async (to, call) =>
        to.startsWith('https://login.microsoftonline.com/')
          ? loggedIn
          : egress.request(to, { answerLimitBytes: 65_536, ports, ...call, deadlineMs: 2000 })
      const config = configsAt(address)[type] as unknown as SinkConfig
      const deps = { request, now: () => new Date(), signal: new AbortController().signal }
      const sending = destination.send(config, [createItem(1)], deps)
      const { kind } = await outcomeForSink(sending, { type, config })
      if (kind === 'delivered' || kind === 'itemised') delivered.push(name)
    }
    expect(delivered).toEqual([])
    expect(counts).toEqual({ trapped: 0, answered: 0 })
  },
)
