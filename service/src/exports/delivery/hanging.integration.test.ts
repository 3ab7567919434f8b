import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { createOrganization } from '#access/manage-organizations.ts'

import { leaseCursors } from './lease-store.ts'
import { callServer, insertSinks, serve } from './testing/sink-server.ts'
import { openDelivery } from './testing/test-delivery.ts'

test('destinations that hang, of many organizations at once, do not hold up the others', async () => {
  const delivery = await openDelivery()
  const { api, startWorker } = delivery
  const organizations = []
  for (let count = 0; count < 60; count++) {
    organizations.push((await createOrganization(`Example ${count}`, api.house)).organizationId)
  }
  await delivery.write(0)
  const served = new Set<string>()
  let hanging = 0
  const port = await serve(({ headers }, response) => {
    const host = String(headers.host)
    if (host.startsWith('works')) {
      served.add(host)
      return void response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    }
    hanging += 1
    if (hanging % 2 === 0) return undefined // never answers; every other one sends a byte now and then
    response.writeHead(200, { 'content-length': 1000 })
    const timer = setInterval(() => response.write('x'), 200)
    response.on('close', () => clearInterval(timer))
  })
  for (const [at, id] of organizations.entries()) {
    const host = `${at < 30 ? 'hangs' : 'works'}-${at}.example.com`
    await insertSinks(delivery, id, [`https://${host}:${port}/`])
  }
  const worker = startWorker(callServer(port))
  await expect.poll(() => served.size, { timeout: 9000, interval: 50 }).toBe(30)
  expect(hanging).toBe(30) // more than a worker sends for at once
  const startedAtMs = performance.now()
  await worker.stop()
  expect(performance.now() - startedAtMs).toBeLessThan(3000)
  const { rows } = await sql`select from export_cursor where lease_until is not null`.execute(
    api.db,
  )
  expect(rows).toEqual([])
})

test('an organization has at most four cursors at a time, and two that fail', async () => {
  const delivery = await openDelivery()
  const { api } = delivery
  const other = await createOrganization('Other Ltd', api.house)
  await delivery.write(1)
  const endpoints = Array.from({ length: 10 }, (_, at) => `https://a-${at}.example.com/`)
  await insertSinks(delivery, api.organization.organizationId, endpoints)
  await insertSinks(delivery, other.organizationId, endpoints.slice(0, 3))
  const lease = async (isFailing: boolean, perOrganization: number) => {
    const leases = await leaseCursors(api.db, { isFailing, limit: 24, perOrganization })
    const counts = Map.groupBy(leases, ({ sink }) => sink.organizationId)
    return [api.organization, other].map(({ organizationId }) => counts.get(organizationId)?.length)
  }
  expect(await lease(false, 4)).toEqual([4, 3])
  expect(await lease(false, 4)).toEqual([undefined, undefined])
  await sql`update export_cursor set attempt = 1, lease_until = null`.execute(api.db)
  expect(await lease(true, 2)).toEqual([2, 2])
})

test('a destination that never answers is given up after its time, and delays no other', async () => {
  const delivery = await openDelivery()
  const id = await delivery.createSink('webhook')
  const healthy = await delivery.createSink('elastic')
  delivery.doubles.webhook.double.intervene(() => 'hang')
  await delivery.write(5)
  delivery.startWorker()
  await expect
    .poll(() => delivery.readSink(healthy), { timeout: 5000 })
    .toMatchObject({ pending_events: 0 })
  await expect
    .poll(() => delivery.readSink(id), { timeout: 10_000 })
    .toMatchObject({
      state: 'retrying',
      last_error: 'The destination did not answer within 3000 ms.',
    })
})
