import type { RequestListener } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'

import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'

import { createOrganization } from '#access/manage-organizations.ts'
import { createTenantEgress } from '#platform/egress.ts'
import { makeCertificate } from '#platform/egress/testing/trap.ts'

import { leaseCursors } from './lease-store.ts'
import { openDelivery, type TestDelivery } from './testing/test-delivery.ts'

/** Sinks without secrets, so that they need no sealing. */
async function insertSinks(
  { api }: TestDelivery,
  organizationId: string,
  endpoints: readonly string[],
) {
  const config = { service_name: 's', header_name: 'Authorization', verify_tls: false }
  for (const [at, endpoint] of endpoints.entries()) {
    const id = `exp_${organizationId}_${at}`
    await sql`
      insert into export_sink (id, organization_id, type, label, enabled, config, created_at, updated_at)
      values (${id}, ${organizationId}, 'otlp_logs', 'x', true,
        ${JSON.stringify({ ...config, endpoint })}::jsonb, now(), now())`.execute(api.db)
    await sql`
      insert into export_cursor (sink_id, organization_id, is_replay, org_seq, signed_size, day, next_at)
      values (${id}, ${organizationId}, false, 0, 0, '2026-01-01', now())`.execute(api.db)
  }
}

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
  const egress = createTenantEgress({
    privateTargets: [],
    ports: [port],
    resolve: async () => [{ address: '127.0.0.1' }],
    isPublic: () => true,
  })
  onTestFinished(() => egress.close())
  const worker = startWorker({
    request: (address, call) =>
      egress.request(address, { answerLimitBytes: 65_536, ...call, deadlineMs: 10_000 }),
  })
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

/** A server with a certificate for these names. */
async function serve(answer: RequestListener): Promise<number> {
  const server = createServer(makeCertificate(), answer)
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

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

test('a destination that never answers is given up after its time, and delays nobody', async () => {
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
