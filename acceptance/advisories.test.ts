import { listAdminApiKeys } from '@gatehouse/contract/api-key'
import { endpoints } from '@gatehouse/contract/endpoints'
import { createProject } from '@gatehouse/contract/project'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { call } from './support/call.ts'
import { useStack } from './support/use-stack.ts'

// Vulnerabilities that other gateways had, each with its advisory. Tests for those that need more than a stack are
// beside the code: tokens and keys in service/src/access, outgoing calls in
// service/src/platform/egress.integration.test.ts, imports in tools/import-table.test.ts.

const stack = useStack()

test('CVE-2026-49468: the Host header has no influence', async () => {
  const { base_url, admin_key: credential } = stack().description
  for (const host of ['localhost', '127.0.0.1', 'admin.internal', 'x'.repeat(200), base_url]) {
    const headers = { host, 'x-forwarded-host': host, 'x-original-url': '/health/live' }
    expect((await call(base_url, listAdminApiKeys, { headers })).status).toBe(401)
    expect((await call(base_url, listAdminApiKeys, { headers, credential })).status).toBe(200)
  }
})

test('GHSA-xqmj-j6mv-4862, GHSA-46cm-pfwv-cgf8: template syntax stays text', async () => {
  const { base_url, admin_key: credential } = stack().description
  for (const name of ['{{7*7}}', '${7*7}', '<%= 7*7 %>', '#{7*7}', '{% raw %}', '$(id)', '`id`']) {
    const { json } = await call(base_url, createProject, { credential, body: { name } })
    expect(json).toMatchObject({ name })
  }
})

/** Of the audit log: evidence, and no credential. */
const publicHashes = ['"payload_hash":', '"previous_hash":', '"hashes":']

test('GHSA-69x8-hrgq-fjj8: no response schema has a member for the hash of a secret', () => {
  for (const { id, response } of endpoints) {
    if (id.endsWith('OpenApi')) continue
    const members = JSON.stringify(z.toJSONSchema(response)).match(/"[^"]*hash[^"]*":/gi) ?? []
    const secret = members.filter((member) => !publicHashes.includes(member))
    expect([id, secret]).toEqual([id, []])
  }
})

test('CVE-2026-86242, CVE-2026-90898: no header makes a guarded route public', async () => {
  const { base_url } = stack().description
  const guarded = endpoints.filter(({ permission }) => permission !== null)
  expect(guarded.length).toBeGreaterThan(0)
  for (const headers of [{ 'x-forwarded-for': '127.0.0.1' }, { 'x-real-ip': '::1' }, {}]) {
    const statuses = guarded.map(async ({ method, path }) => {
      const response = await fetch(base_url + path.replaceAll(/:\w+/g, 'x'), { method, headers })
      return response.status
    })
    expect(new Set(await Promise.all(statuses))).toEqual(new Set([401]))
  }
})

test('CVE-2020-11710: the public listener serves no operations route', async () => {
  const { base_url, metrics_urls } = stack().description
  for (const path of ['/metrics', '/debug', '/admin', '/health', '/health/ready/detail']) {
    expect((await fetch(base_url + path)).status).toBe(404)
  }
  expect(new URL(metrics_urls[0] ?? '').hostname).toBe('127.0.0.1')
})
