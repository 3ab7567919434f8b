import type { RequestListener } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'

import { sql } from 'kysely'
import { onTestFinished } from 'vitest'

import { createTenantEgress } from '#platform/egress.ts'
import { makeCertificate } from '#platform/egress/testing/trap.ts'

import type { TestDelivery } from './test-delivery.ts'

/** Sinks without secrets, so that they need no sealing. */
export async function insertSinks(
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

/** A server with a certificate for every name. */
export async function serve(answer: RequestListener): Promise<number> {
  const server = createServer(makeCertificate(), answer)
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

/** What a worker calls this server with, whatever the name of the destination is. */
export function callServer(port: number) {
  const egress = createTenantEgress({
    privateTargets: [],
    resolve: async () => [{ address: '127.0.0.1' }],
    isPublic: () => true,
  })
  onTestFinished(() => egress.close())
  const request: Parameters<TestDelivery['startWorker']>[0] = {
    request: (address, call) =>
      egress.request(address, {
        answerLimitBytes: 65_536,
        ...call,
        ports: [port],
        deadlineMs: 10_000,
      }),
  }
  return request
}
