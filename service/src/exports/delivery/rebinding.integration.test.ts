import { sinkTypes, type SinkType } from '@gatehouse/contract/exports/sink-config'
import { sql } from 'kysely'
import { afterAll, expect, test } from 'vitest'

import { sinkCalls } from '#exports/sinks/testing/sink-calls.ts'
import { ssrfVectors } from '#platform/egress/testing/ssrf-vectors.ts'
import { closeServers, openTraps } from '#platform/egress/testing/trap.ts'
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

test('422: no way around the guard can be saved', async () => {
  const vectors = ssrfVectors([8088, 9200, 9243]).filter(({ call }) => call === undefined)
  expect(vectors.length).toBeGreaterThan(150)
  let found: string[] = []
  const calls = sinkCalls(await createTestApi({ findAddresses: async () => found }))
  const secret = `whsec_${Buffer.alloc(24).toString('base64')}`
  const saved = []
  for (const { name, address, turns = [] } of vectors) {
    found = turns.at(-1) ?? []
    const { status, error } = await calls.create({
      type: 'webhook',
      config: { endpoint: address, secret },
    })
    if (status !== 422) saved.push([name, status])
    else expect([name, error.param]).toEqual([name, 'body.config.endpoint'])
  }
  expect(saved).toEqual([])
}, 60_000)
