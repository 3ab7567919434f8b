import { setTimeout as sleep } from 'node:timers/promises'

import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { createOrganization } from '#access/manage-organizations.ts'

import { callServer, insertSinks, serve } from './testing/sink-server.ts'
import { openDelivery } from './testing/test-delivery.ts'

// Destinations that take every batch, but only after a while: nothing fails, and no cursor waits.

const slowMs = 3000
/** Each sends its events in eight batches, because those begin with one event and grow. */
const eventsEach = 200

/** How long an event of another organization takes while organizations with slow sinks keep a worker busy. */
async function measureOther(slow: { organizations: number; sinksEach: number }) {
  const delivery = await openDelivery()
  const { api } = delivery
  let [atOnce, atOnceMax, isServed] = [0, 0, false]
  const port = await serve(({ headers }, response) => {
    const answer = () => response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    if (String(headers.host).startsWith('quick')) {
      isServed = true
      answer()
      return
    }
    atOnceMax = Math.max(atOnceMax, ++atOnce)
    setTimeout(() => {
      atOnce -= 1
      answer()
    }, slowMs)
  })
  for (let at = 0; at < slow.organizations; at++) {
    const organization = await createOrganization(`Slow ${at}`, api.house)
    await delivery.write(eventsEach, 'x', organization)
    const hosts = Array.from({ length: slow.sinksEach }, (_, each) => `slow-${at}-${each}`)
    await insertSinks(
      delivery,
      organization.organizationId,
      hosts.map((host) => `https://${host}.example.com:${port}/`),
    )
  }
  await sql`update export_cursor set batch_max = 1`.execute(api.db)
  delivery.startWorker(callServer(port))
  const busyMax = Math.min(64, slow.organizations * slow.sinksEach)
  for (let round = 0; round < 60 && atOnce < busyMax; round++) await sleep(100)
  const { organizationId } = api.organization
  await insertSinks(delivery, organizationId, [`https://quick.example.com:${port}/`])
  const startedAtMs = performance.now()
  await delivery.write(1)
  await expect.poll(() => isServed, { timeout: 60_000, interval: 20 }).toBe(true)
  return { waitedMs: performance.now() - startedAtMs, atOnceMax }
}

test('16 organizations with slow sinks do not have all places of a worker', async () => {
  const { waitedMs, atOnceMax } = await measureOther({ organizations: 16, sinksEach: 6 })
  // They are still served, and mostly two sinks of each at a time.
  expect(atOnceMax).toBeGreaterThan(16)
  expect(atOnceMax).toBeLessThanOrEqual(48)
  expect(waitedMs / slowMs).toBeLessThan(1)
})

test('where even more are slow, a place becomes free with each batch', async () => {
  const { waitedMs, atOnceMax } = await measureOther({ organizations: 80, sinksEach: 1 })
  expect(atOnceMax).toBe(64)
  expect(waitedMs / slowMs).toBeLessThan(3)
})
