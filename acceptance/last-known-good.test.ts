import { readFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'

import { createClient } from '@gatehouse/contract/client'
import { createPolicy, listPolicies, publishPolicy } from '@gatehouse/contract/policy'
import { type ApiProcess, stopProcess } from '@gatehouse/tools/service-process'
import { expect, onTestFinished, test } from 'vitest'

import { call, codeOf } from './support/call.ts'
import { useStack } from './support/use-stack.ts'

// The database is down when a process starts. The process reads keys and policies from its copy on disk, reports itself
// ready because no other process would have newer data, and catches up when the database is back.

const stack = useStack({ models: null })
/** Long enough for a busy machine; how fast it happens is not checked. */
const eventually = { timeout: 60_000 }

/** A proxy to the database that refuses connections until it is opened. */
async function startClosedProxy() {
  const target = new URL(stack().database.url)
  const server = createServer((near) => {
    const far = connect(Number(target.port || 5432), target.hostname)
    near.pipe(far).on('error', () => near.destroy())
    far.pipe(near).on('error', () => far.destroy())
  })
  const listen = (port: number) =>
    new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  await listen(0)
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  onTestFinished(() => void server.close())
  const url = new URL(target)
  url.host = `127.0.0.1:${port}`
  return { url: url.toString(), open: () => listen(port) }
}

const readInForce = async ({ metricsUrl }: ApiProcess) => {
  const { organization_id } = stack().description
  const response = await fetch(metricsUrl.replace(/metrics$/, `policies/${organization_id}`))
  return (await response.json()) as unknown
}

const readReadiness = async ({ baseUrl }: ApiProcess) =>
  (await fetch(`${baseUrl}/health/ready`)).status

test('a process that starts without the database serves from its last known good copy', async () => {
  const { base_url: baseUrl, admin_key: credential } = stack().description
  const client = createClient({ baseUrl, credential })
  const rule = {
    name: 'Kindness',
    rule: 'cel: text.contains("unkind")',
    mode: 'enforcing',
  } as const
  const { id } = await client.call(createPolicy, { body: { ...rule, scope: 'organization' } })
  const params = { policy_id: id }
  await client.call(publishPolicy, { params, query: { wait: 'applied' }, body: { revision: 1 } })
  const file = join(stack().folder, 'state', 'policies')
  await expect.poll(() => readFile(file, 'utf8').catch(() => ''), eventually).toContain(id)
  await stopProcess(stack().apis[0]!.child)

  const proxy = await startClosedProxy()
  const late = await stack().startApi('late', { DATABASE_URL: proxy.url })
  await expect.poll(() => readReadiness(late), eventually).toBe(200)
  const policies = [expect.objectContaining({ policy_id: id, version: 1, mode: 'enforcing' })]
  await expect
    .poll(() => readInForce(late), eventually)
    .toEqual({ epoch: 1, is_stale: true, policies })

  // A known key is recognised and calls that need the database are refused; an unknown key cannot be checked.
  const known = await call(late.baseUrl, listPolicies, { credential })
  expect([known.status, codeOf(known)]).toEqual([503, 'dependency_unavailable'])
  const validated = await call(late.baseUrl, listPolicies, { credential, query: { limit: '0' } })
  expect(validated.status).toBe(422)
  const unknown = `gate_adm_${'0'.repeat(43)}1BVBOF`
  const other = await call(late.baseUrl, listPolicies, { credential: unknown })
  expect([other.status, codeOf(other)]).toEqual([503, 'dependency_unavailable'])

  await proxy.open()
  await expect
    .poll(() => readInForce(late), eventually)
    .toEqual({ epoch: 1, is_stale: false, policies })
  await expect
    .poll(async () => (await call(late.baseUrl, listPolicies, { credential })).status, eventually)
    .toBe(200)
})
