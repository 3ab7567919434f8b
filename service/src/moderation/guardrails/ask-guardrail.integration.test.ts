import { afterEach, beforeEach, expect, test } from 'vitest'

import { portsOf } from '#exports/destinations/ports.ts'
import { createGuardrailDouble, guardrailSecret } from '#moderation/testing/guardrail-double.ts'
import { createTenantEgress, type Egress } from '#platform/egress.ts'
import { createOriginPools, type OriginPools } from '#platform/origin-pools.ts'

import { askGuardrail } from './ask-guardrail.ts'
import type { Guardrail } from './guardrail.ts'
import { createSendQuestion, guardrailPorts } from './send-question.ts'

let double: Awaited<ReturnType<typeof createGuardrailDouble>>
let pools: OriginPools
let egress: Egress

beforeEach(async () => {
  double = await createGuardrailDouble()
  pools = createOriginPools()
  egress = createTenantEgress({ privateTargets: [new URL(double.url).host] })
})
afterEach(async () => {
  await pools.close()
  await egress.close()
  await double[Symbol.asyncDispose]()
})

const never = new AbortController().signal
const usual: Omit<Guardrail, 'url'> = {
  name: 'house',
  id: null,
  mode: 'enforcing',
  onError: 'refuse',
  deadlineMs: 3000,
  secret: guardrailSecret,
}
const owners = [
  { of: 'the operator', id: null },
  { of: 'an organization', id: 'grd_1' },
]

function ask(
  texts: readonly string[],
  guardrail: Partial<Guardrail> = {},
  signal: AbortSignal = never,
) {
  const deps = { send: createSendQuestion({ pools, egress }), now: () => new Date() }
  const question = {
    id: 'grq_1',
    direction: 'request',
    organizationId: 'org_1',
    projectId: 'proj_1',
    requestId: 'req_1',
    model: 'm',
    isLast: true,
    texts: texts.map((text) => ({ role: 'user' as const, text })),
  } as const
  return askGuardrail(deps, { ...usual, url: double.url, ...guardrail }, question, signal)
}

test.each(owners)('the guardrail of $of gets a signed question and decides', async ({ id }) => {
  expect(await ask(['hello'], { id })).toEqual({ kind: 'allow', code: null })
  expect(await ask(['forbidden'], { id })).toMatchObject({ kind: 'block', code: 'word' })
  expect(await ask(['a', '😀 555-1234'], { id })).toMatchObject({
    kind: 'rewrite',
    edits: [[], [{ start: 3, end: 11, replacement: '#' }]],
  })
  expect(double.signatures).toEqual(['right', 'right', 'right'])
  expect(double.questions[0]).toEqual({
    id: 'grq_1',
    direction: 'request',
    organization_id: 'org_1',
    project_id: 'proj_1',
    request_id: 'req_1',
    model: 'm',
    is_last: true,
    texts: [{ index: 0, role: 'user', text: 'hello', new_from: 0 }],
  })
})

test('without a secret nothing is signed, and a signature by another one is wrong', async () => {
  await ask(['a'], { secret: null })
  await ask(['a'], { secret: `whsec_${Buffer.alloc(24, 9).toString('base64')}` })
  expect(double.signatures).toEqual(['none', 'wrong'])
})

const failures = [
  [400, 'misconfigured'],
  [401, 'misconfigured'],
  [403, 'misconfigured'],
  [201, 'status'],
  [302, 'status'],
  [404, 'status'],
  [429, 'status'],
  [500, 'status'],
  ['hangs', 'late'],
  ['hangs up', 'unreachable'],
  ['stops', 'unreachable'],
  [{ raw: 'ok' }, 'malformed'],
  [{ raw: '{"action":"rewrite","spans":[]}' }, 'malformed'],
  [{ raw: `{"action":"allow","x":"${'x'.repeat(300 * 1024)}"}` }, 'too_large'],
] as const

test.each(owners.flatMap(({ of, id }) => failures.map((each) => [of, id, ...each] as const)))(
  'a guardrail of %s (%s) that answers %j has failed: %s',
  async (_, id, behaviour, problem) => {
    double.become(behaviour)
    const outcome = await ask(['a'], { id, deadlineMs: 300 })
    expect(outcome).toMatchObject({ kind: 'failed', failure: { problem } })
    const { message } = (outcome as { failure: Error }).failure
    expect(message).not.toContain('127.0.0.1')
    expect(message).not.toContain(guardrailSecret)
  },
)

test.each(owners)('a connection that $of has lost is opened again', async ({ id }) => {
  double.become('hangs up once')
  expect(await ask(['a'], { id })).toEqual({ kind: 'allow', code: null })
  expect(double.questions.map((asked) => asked.id)).toEqual(['grq_1', 'grq_1'])
})

test.each(owners)('a question of $of ends when its caller gives it up', async ({ id }) => {
  double.become('hangs')
  const aborting = new AbortController()
  const asking = ask(['a'], { id }, aborting.signal)
  await expect.poll(() => double.questions.length).toBe(1)
  aborting.abort(new Error('the caller is gone'))
  await expect(asking).rejects.toThrow('the caller is gone')
  await expect.poll(() => double.cancelled).toBe(1)
})

test('the guardrail of an organization reaches no private address that is not listed', async () => {
  const other = await createGuardrailDouble()
  await using _ = other
  const outcome = await ask(['a'], { id: 'grd_1', url: other.url })
  expect(outcome).toMatchObject({ kind: 'failed', failure: { problem: 'misconfigured' } })
  expect(other.questions).toEqual([])
})

test('the ports of organizations’ guardrails are those of their webhook sinks', () => {
  expect(guardrailPorts).toEqual(portsOf.webhook)
})

test('where the address cannot be connected, the failure says so', async () => {
  await double[Symbol.asyncDispose]()
  for (const { id } of owners) {
    expect(await ask(['a'], { id })).toMatchObject({
      kind: 'failed',
      failure: { problem: 'unreachable' },
    })
  }
  double = await createGuardrailDouble()
})
