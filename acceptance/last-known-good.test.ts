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

// The database is away when a process starts. It knows its callers and their policies from the copy on
// disk, is ready because nobody else could serve better, and catches up when the database is back.

const stack = useStack({ models: null })

/** A way to the database that is closed until it is opened. */
async function closedDoor() {
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

const inForce = async ({ metricsUrl }: ApiProcess) => {
  const { organization_id } = stack().description
  const response = await fetch(metricsUrl.replace(/metrics$/, `policies/${organization_id}`))
  return (await response.json()) as unknown
}

const readiness = async ({ baseUrl }: ApiProcess) => (await fetch(`${baseUrl}/health/ready`)).status

test('a start without the database, from the last known good', async () => {
  const { base_url: baseUrl, admin_key: credential } = stack().description
  const client = createClient({ baseUrl, credential })
  const rule = { name: 'Kindness', rule: 'Be kind.', mode: 'enforcing' } as const
  const { id } = await client.call(createPolicy, { body: { ...rule, scope: 'organization' } })
  const params = { policy_id: id }
  await client.call(publishPolicy, { params, query: { wait: 'applied' }, body: { revision: 1 } })
  const file = join(stack().folder, 'state', 'policies')
  await expect.poll(() => readFile(file, 'utf8').catch(() => '')).toContain(id)
  await stopProcess(stack().apis[0]!.child)

  const door = await closedDoor()
  const late = await stack().startApi('late', { DATABASE_URL: door.url })
  await expect.poll(() => readiness(late), { timeout: 5000 }).toBe(200)
  const policies = [expect.objectContaining({ policy_id: id, version: 1, mode: 'enforcing' })]
  await expect
    .poll(() => inForce(late), { timeout: 5000 })
    .toEqual({ epoch: 1, is_stale: true, policies })

  // The key is recognised, what needs the database is not done; an unknown key cannot be judged.
  const known = await call(late.baseUrl, listPolicies, { credential })
  expect([known.status, codeOf(known)]).toEqual([503, 'dependency_unavailable'])
  const judged = await call(late.baseUrl, listPolicies, { credential, query: { limit: '0' } })
  expect(judged.status).toBe(422)
  const unknown = `gate_adm_${'0'.repeat(43)}1BVBOF`
  const other = await call(late.baseUrl, listPolicies, { credential: unknown })
  expect([other.status, codeOf(other)]).toEqual([503, 'dependency_unavailable'])

  await door.open()
  await expect
    .poll(() => inForce(late), { timeout: 5000 })
    .toEqual({ epoch: 1, is_stale: false, policies })
  await expect
    .poll(async () => (await call(late.baseUrl, listPolicies, { credential })).status)
    .toBe(200)
})
