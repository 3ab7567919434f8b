import { afterEach, beforeEach, expect, test } from 'vitest'

import { type AnswerEvent, type Json, noUsage, type Piece } from '#formats/answer.ts'
import { chatCallerFormat } from '#formats/chat-completions/chat-completion-format.ts'
import { readRequestTexts } from '#formats/texts/request-texts.ts'
import { type CheckedCall, createFindings } from '#inference/enforcement/findings.ts'
import { createGuardrails } from '#moderation/guardrails/create-guardrails.ts'
import type { Guardrail } from '#moderation/guardrails/guardrail.ts'
import { createSendQuestion } from '#moderation/guardrails/send-question.ts'
import { blockedWord, createGuardrailDouble } from '#moderation/testing/guardrail-double.ts'
import { ApiError } from '#platform/api-error.ts'
import { Cancellation } from '#platform/calls/cancellation.ts'
import { createTenantEgress, type Egress } from '#platform/egress.ts'
import { createMetrics } from '#platform/metrics.ts'
import { createOriginPools, type OriginPools } from '#platform/origin-pools.ts'
import { finish } from '#platform/steps/steps.ts'
import { silentLog } from '#testing/silent-log.ts'

import { openCallGuardrails } from './call-guardrails.ts'

// What is said of guardrails of organizations, and what is counted; with a real guardrail.

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

const operators = { name: 'house', id: null } as const
const own = { name: 'our own', id: 'grd_1' } as const

function open(members: readonly Partial<Guardrail>[], { isOverLimit = false } = {}) {
  const findings = createFindings()
  const cancellation = new Cancellation()
  const counted = { begun: 0, added: 0 }
  const principal = { organizationId: 'org_1', projectId: 'proj_1' }
  const call = { principal, cancellation, requestId: 'req_1' } as unknown as CheckedCall
  const deps = {
    send: createSendQuestion({ pools, egress }),
    now: () => new Date(),
    steadyNow: () => new Date(performance.now()),
    log: silentLog,
    metrics: createMetrics(),
  }
  const guardrails = openCallGuardrails(
    { askGuardrail: createGuardrails(deps), now: deps.now },
    members.map((each) => ({
      ...operators,
      mode: 'enforcing',
      onError: 'refuse',
      deadlineMs: 500,
      url: double.url,
      secret: null,
      ...each,
    })),
    {
      call,
      model: 'm',
      findings,
      questions: {
        guardrail: {
          async begin() {
            if (isOverLimit) throw new ApiError('rate_limit_exceeded', 'Too many questions.')
            counted.begun++
          },
          add: () => void counted.added++,
          check: async () => undefined,
        },
      },
      asker: { owner: 'org_1', signal: cancellation.signal },
    },
  )
  return { guardrails, findings, counted, cancellation }
}

function sentRequest(content: string) {
  let body: Json = { model: 'm', messages: [{ role: 'user', content }] }
  return {
    get body() {
      return body
    },
    get texts() {
      return finish(readRequestTexts(chatCallerFormat.readTurn(body)))
    },
    async replaceWith(changed: Json) {
      body = changed
    },
  }
}

async function* answerOf(text: string): AsyncGenerator<Piece> {
  const events: AnswerEvent[] = [
    { type: 'started', id: 'a', model: 'm', usage: noUsage },
    { type: 'block_started', index: 0, block: { type: 'text' } },
    { type: 'block_delta', index: 0, text },
    { type: 'block_ended', index: 0 },
    { type: 'finished', reason: 'end', stopSequence: null, usage: noUsage },
  ]
  const source = { event: '', data: '', bytes: Buffer.alloc(0), json: {} }
  yield { format: 'messages', frames: [{ events, source }] }
}

async function read(opened: ReturnType<typeof open>, text: string): Promise<string> {
  let left = ''
  const answer = { prefill: '', interrupt: () => undefined }
  for await (const { frames } of opened.guardrails.guardAnswer(answerOf(text), answer)) {
    for (const { events } of frames)
      for (const event of events) if (event.type === 'block_delta') left += event.text
  }
  return left
}

test('a guardrail of the organization blocks in its own name', async () => {
  const opened = open([own])
  const refusal = await opened.guardrails.checkRequest(sentRequest(blockedWord))
  expect(refusal).toMatchObject({
    code: 'policy_blocked',
    message:
      "The guardrail 'our own' of your organization does not allow this request: A word is not allowed. It was not sent to a model, and it costs nothing.",
    policy: { policy_id: 'grd_1', version: null, reason_code: 'GUARDRAIL_BLOCKED' },
  })
  expect(opened.findings.blockedBy).toEqual({
    policyId: 'grd_1',
    policyName: 'our own',
    version: null,
    reasonCode: 'GUARDRAIL_BLOCKED',
  })
  await expect(read(open([own]), `It is ${blockedWord}.`)).rejects.toMatchObject({
    message:
      "The guardrail 'our own' of your organization does not allow this answer: A word is not allowed. What was generated is charged.",
  })
})

test('whatever a guardrail gives as its reason, the message is one line and not too long', async () => {
  const reason = `line one\nline two \u202e${'x'.repeat(900)}`
  double.reply(() => ({ action: 'block', reason }))
  const name = 'n'.repeat(80)
  const { guardrails } = open([{ ...own, name }])
  const refusal = await guardrails.checkRequest(sentRequest('Hello'))
  expect(refusal?.message).toContain('does not allow this request: line one line two xxx')
  expect(refusal?.message.length).toBeLessThanOrEqual(300)
  expect(refusal?.message).not.toMatch(/\n|\u202e/)
})

test('questions to the operator’s guardrails are counted, and an organization’s own are not', async () => {
  const opened = open([operators, { ...operators, name: 'second' }, own])
  expect(await opened.guardrails.checkRequest(sentRequest('Hello'))).toBeNull()
  expect(opened.counted).toEqual({ begun: 2, added: 0 })
  await read(opened, 'Hello.')
  expect(opened.counted).toEqual({ begun: 2, added: 2 })
  expect(double.questions).toHaveLength(6)
})

test('a request with too many questions is refused, an answer goes on', async () => {
  const { guardrails } = open([operators], { isOverLimit: true })
  await expect(guardrails.checkRequest(sentRequest('Hello'))).rejects.toMatchObject({
    code: 'rate_limit_exceeded',
  })
  expect(double.questions).toEqual([])
  expect(await read(open([operators], { isOverLimit: true }), 'Hello.')).toBe('Hello.')
})

test('a monitoring guardrail that may not be asked refuses nothing', async () => {
  const opened = open([{ ...operators, mode: 'monitoring' }], { isOverLimit: true })
  expect(await opened.guardrails.checkRequest(sentRequest('Hello'))).toBeNull()
  expect(await read(opened, 'Hello.')).toBe('Hello.')
  expect(opened.findings.guardrails).toMatchObject([
    { direction: 'request', action: 'failed', code: 'overloaded' },
    { direction: 'response', action: 'allow', code: null },
  ])
})

test('what a request says is asked about as earlier guardrails have rewritten it', async () => {
  const opened = open([operators, own])
  const sent = sentRequest('Call 555-1234.')
  expect(await opened.guardrails.checkRequest(sent)).toBeNull()
  expect(double.questions.map(({ texts }) => texts.map(({ text }) => text))).toEqual([
    ['Call 555-1234.'],
    ['Call #.'],
  ])
  expect(opened.findings.guardrails.map(({ action }) => action)).toEqual(['rewrite', 'allow'])
})

test('one that fails is told apart from one that the organization runs', async () => {
  double.become(500)
  const answered = async (guardrail: Partial<Guardrail>) =>
    read(open([guardrail]), 'Hello.').catch((error: unknown) => error)
  expect(await answered(operators)).toMatchObject({ cause: { isOfOrganization: false } })
  expect(await answered(own)).toMatchObject({ cause: { isOfOrganization: true } })
})

test('a caller who is gone ends all questions, monitoring ones too', async () => {
  double.become('hangs')
  const opened = open([
    { ...operators, mode: 'monitoring', deadlineMs: 10_000 },
    { ...own, deadlineMs: 10_000 },
  ])
  const checking = opened.guardrails.checkRequest(sentRequest('Hello'))
  await expect.poll(() => double.questions.length).toBe(2)
  opened.cancellation.cancel(new Error('the caller is gone'))
  await expect(checking).rejects.toThrow('the caller is gone')
  await expect.poll(() => double.cancelled).toBe(2)
})

test('the event waits for monitoring guardrails no longer than for one question', async () => {
  double.become('hangs')
  const opened = open([{ ...operators, mode: 'monitoring', deadlineMs: 200 }])
  const startedAtMs = performance.now()
  const long = 'word '.repeat(800)
  expect(await read(opened, long)).toBe(long)
  expect(performance.now() - startedAtMs).toBeLessThan(1000)
  expect(opened.findings.guardrails).toMatchObject([{ action: 'failed', code: 'late' }])
})
