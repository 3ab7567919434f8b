import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { measureDelivery } from './measure-delivery.ts'
import { openDelivery } from './testing/test-delivery.ts'

test('the gauges say how many sinks fail, how much is pending and since when', async () => {
  const { api, createSink, write } = await openDelivery()
  const [first, second, disabled] = [
    await createSink('webhook'),
    await createSink('elastic'),
    await createSink('splunk_hec'),
  ]
  const valuesOf = async () => {
    await measureDelivery({ ...api.house, now: () => new Date(Date.now() + 60_000) })
    const text = await api.house.metrics.registry.metrics()
    return Object.fromEntries(
      [...text.matchAll(/^gatehouse_export_(sinks\S*|pending\S*|lag\S*) (\S+)$/gm)].map(
        ([, name, value]) => [name, Number(value)],
      ),
    )
  }
  await write(3)
  await sql`update export_cursor set org_seq = (select org_seq from audit_head)`.execute(api.db)
  await sql`update export_sink set enabled = false where id = ${disabled}`.execute(api.db)
  expect(await valuesOf()).toEqual({
    'sinks{state="error"}': 0,
    'sinks{state="retrying"}': 0,
    pending_events: 0,
    lag_seconds: 0,
  })
  await sql`
    update export_cursor set state = case sink_id when ${first} then 'error' else 'retrying' end,
      org_seq = org_seq - case sink_id when ${second} then 2 else 1 end`.execute(api.db)
  const { lag_seconds: lag, ...others } = await valuesOf()
  expect(others).toEqual({
    'sinks{state="error"}': 1,
    'sinks{state="retrying"}': 1,
    pending_events: 3,
  })
  expect(lag).toBeGreaterThanOrEqual(60)
  expect(lag).toBeLessThan(90)
})
