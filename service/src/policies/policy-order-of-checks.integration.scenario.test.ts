import { createAdminApiKey } from '@gatehouse/contract/api-key'
import { buildUrl } from '@gatehouse/contract/client'
import type { Endpoint } from '@gatehouse/contract/endpoint'
import {
  createPolicy,
  deletePolicy,
  pausePolicy,
  publishPolicy,
  restorePolicyVersion,
  resumePolicy,
  updatePolicy,
} from '@gatehouse/contract/policy'
import { beforeEach, expect, test } from 'vitest'

import { createPolicyApi } from '#testing/policy-calls.ts'

// 401, 403, 413, 400, 422, 409 of idempotency, 404, 409 of the revision, 409 of the state. Each
// request below violates the rule it is named after and every later one that can be violated with it.

let house: Awaited<ReturnType<typeof createPolicyApi>>
beforeEach(async () => {
  house = await createPolicyApi()
})

const mutations = [
  createPolicy,
  updatePolicy,
  publishPolicy,
  pausePolicy,
  resumePolicy,
  restorePolicyVersion,
  deletePolicy,
] satisfies Endpoint[]
const limitBytes = 65_536

type Raw = {
  credential?: string | null
  id?: string
  revision?: string
  payload?: string
  type?: string | null
  key?: string
}

/** Sends bytes as they are; without more it asks an unknown policy for something unacceptable. */
async function sendRaw(endpoint: Endpoint, raw: Raw = {}) {
  const { credential = house.api.organization.adminKey, id = 'pol_none', revision = '0' } = raw
  const { payload = '{', type = 'application/json', key } = raw
  const params = { policy_id: id, version: '1' }
  const query = endpoint.method === 'DELETE' ? { revision } : {}
  const answer = await house.api.app.inject({
    method: endpoint.method,
    url: buildUrl('', endpoint.path, params, query),
    headers: {
      ...(credential && { authorization: `Bearer ${credential}` }),
      ...(type && { 'content-type': type }),
      ...(key && { 'idempotency-key': key }),
    },
    payload,
  })
  return outcome(answer.statusCode, answer.json<{ error?: { code: string } }>())
}

const outcome = (status: number, { error }: { error?: { code: string } }) =>
  error ? `${status} ${error.code}` : `${status}`

const tooLarge = '{'.repeat(limitBytes + 1)
const bodyFor = (endpoint: Endpoint, name = 'Name') =>
  JSON.stringify(
    endpoint === createPolicy
      ? { name, rule: 'Rule.' }
      : { revision: 1, ...(endpoint === updatePolicy && { name }) },
  )

test('401 before 403 and all else', async () => {
  const worst = { payload: tooLarge, type: null, key: ' ' }
  for (const endpoint of mutations) {
    const missing = await sendRaw(endpoint, { ...worst, credential: null })
    expect(missing, endpoint.id).toBe('401 missing_credentials')
    const malformed = await sendRaw(endpoint, { ...worst, credential: 'gate_adm_x' })
    expect(malformed, endpoint.id).toBe('401 invalid_api_key')
  }
})

test('403 before 413 and all else', async () => {
  for (const endpoint of mutations) {
    const others = ['policies.read', 'policies.write', 'policies.publish'].filter(
      (permission) => permission !== endpoint.permission,
    )
    const narrow = { name: 'Narrow', permissions: others }
    const { body } = await house.api.send(createAdminApiKey, { body: narrow })
    const worst = { payload: tooLarge, type: null, key: ' ', credential: body.value }
    expect(await sendRaw(endpoint, worst), endpoint.id).toBe('403 permission_denied')
  }
})

test('413 before 400 and all else', async () => {
  for (const endpoint of mutations) {
    const worst = { payload: tooLarge, type: null, key: ' ' }
    expect(await sendRaw(endpoint, worst), endpoint.id).toBe('413 request_too_large')
  }
})

test('400 before 422 and all else', async () => {
  for (const endpoint of mutations.filter((each: Endpoint) => each.body)) {
    const worst = { id: 'x'.repeat(201), key: ' ' }
    for (const type of [null, 'text/plain']) {
      const untyped = await sendRaw(endpoint, { ...worst, type })
      expect(untyped, endpoint.id).toBe('400 invalid_content_type')
    }
    expect(await sendRaw(endpoint, worst), endpoint.id).toBe('400 invalid_json')
  }
})

/** Uses a key up on the path of an unknown policy: its next use with other bytes is a reuse. */
async function useUp(endpoint: Endpoint, key: string) {
  const payload = `${bodyFor(endpoint)} `
  const first = await sendRaw(endpoint, { key, payload, revision: '2' })
  expect(first).toBe(endpoint === createPolicy ? '201' : '404 policy_not_found')
}

test('422 before 409 of idempotency and 404', async () => {
  for (const endpoint of mutations) {
    await useUp(endpoint, 'k')
    const answer = await sendRaw(endpoint, { key: 'k', payload: '{"revision":0}' })
    expect(answer, endpoint.id).toMatch(/^422 (invalid_parameter|missing_field)$/)
    const malformed = { key: ' ', payload: bodyFor(endpoint), revision: '1' }
    expect(await sendRaw(endpoint, malformed), endpoint.id).toBe('422 invalid_parameter')
  }
})

test('422 of a rule before 409 of idempotency and 404', async () => {
  for (const endpoint of [createPolicy, updatePolicy]) {
    await useUp(endpoint, 'k')
    const wish = endpoint === createPolicy ? { name: 'Name' } : { revision: 1 }
    const payload = JSON.stringify({ ...wish, rule: 'cel: ' })
    expect(await sendRaw(endpoint, { key: 'k', payload })).toBe('422 invalid_parameter')
  }
})

test('409 of idempotency before 404', async () => {
  for (const endpoint of mutations) {
    await useUp(endpoint, 'k')
    const payload = bodyFor(endpoint, 'Another')
    const again = await sendRaw(endpoint, { key: 'k', payload, revision: '3' })
    expect(again, endpoint.id).toBe('409 idempotency_key_reused')
  }
})

test('404 before 409 of the revision, and that before the state', async () => {
  const gone = await house.create()
  await house.send(deletePolicy, gone)
  const worst = { payload: JSON.stringify({ revision: 7 }), revision: '7' }
  for (const endpoint of mutations.filter((each) => each !== createPolicy)) {
    const absent = await sendRaw(endpoint, { ...worst, id: gone.id })
    expect(absent, endpoint.id).toBe('404 policy_not_found')
    const policy = await house.createIn(endpoint === pausePolicy ? 'draft' : 'monitoring')
    const stale = await sendRaw(endpoint, { ...worst, id: policy.id })
    expect(stale, endpoint.id).toBe('409 revision_conflict')
  }
})

test('409 of the state comes last', async () => {
  const [draft, published] = [await house.create(), await house.createIn('monitoring')]
  const seen = await Promise.all([
    house.send(pausePolicy, draft),
    house.send(resumePolicy, draft),
    house.send(publishPolicy, published),
  ])
  expect(seen.map(({ status, body }) => outcome(status, body))).toEqual([
    '409 policy_not_active',
    '409 policy_not_paused',
    '409 no_unpublished_changes',
  ])
})

/** JSON of exactly this many bytes, padded with white space. */
const padded = (body: object, bytes: number) => {
  const text = JSON.stringify(body)
  return `${text.slice(0, -1)}${' '.repeat(bytes - Buffer.byteLength(text))}}`
}

test('a body of 65,536 bytes is accepted, one more is 413, on every endpoint with a body', async () => {
  const made = await sendRaw(createPolicy, {
    payload: padded({ name: 'N', rule: 'R' }, limitBytes),
  })
  expect(made).toBe('201')
  const over = { payload: padded({ name: 'N', rule: 'R' }, limitBytes + 1) }
  expect(await sendRaw(createPolicy, over)).toBe('413 request_too_large')
  let policy = await house.create({ rule: 'First.' })
  for (const [endpoint, extra] of [
    [updatePolicy, { rule: '💥'.repeat(16_000) }], // 64,000 of the bytes are content
    [publishPolicy, {}],
    [pausePolicy, {}],
    [resumePolicy, {}],
    [restorePolicyVersion, {}],
  ] as const) {
    const body = { revision: policy.revision, ...extra }
    const sent = (bytes: number) =>
      sendRaw(endpoint, { id: policy.id, payload: padded(body, bytes) })
    expect(await sent(limitBytes + 1), endpoint.id).toBe('413 request_too_large')
    expect(await house.read(policy)).toEqual(policy)
    expect(await sent(limitBytes), endpoint.id).toBe('200')
    policy = await house.read(policy)
  }
})

/** In pieces and without Content-Length, over a socket. */
async function sendChunked(address: string, endpoint: Endpoint, id: string, payload: string) {
  const bytes = Buffer.from(payload)
  const pieces = Array.from({ length: Math.ceil(bytes.length / 8192) }, (_, index) =>
    bytes.subarray(index * 8192, (index + 1) * 8192),
  )
  const response = await fetch(buildUrl(address, endpoint.path, { policy_id: id }), {
    method: endpoint.method,
    headers: {
      authorization: `Bearer ${house.api.organization.adminKey}`,
      'content-type': 'application/json',
    },
    body: ReadableStream.from(pieces),
    duplex: 'half',
  })
  return outcome(response.status, (await response.json()) as { error?: { code: string } })
}

test('the limit holds for chunked bodies too', async () => {
  const address = await house.api.app.listen({ port: 0, host: '127.0.0.1' })
  const policy = await house.create()
  const creation = { name: 'N', rule: 'R' }
  const edit = { revision: 1, name: 'Renamed' }
  const bodies = [
    [createPolicy, creation, '201'],
    [updatePolicy, edit, '200'],
  ] as const
  for (const [endpoint, body, success] of bodies) {
    const send = (bytes: number) => sendChunked(address, endpoint, policy.id, padded(body, bytes))
    expect(await send(limitBytes + 1), endpoint.id).toBe('413 request_too_large')
    expect(await house.read(policy)).toEqual(policy)
    expect(await send(limitBytes), endpoint.id).toBe(success)
  }
  expect(await house.read(policy)).toMatchObject({ name: 'Renamed', revision: 2 })
})
