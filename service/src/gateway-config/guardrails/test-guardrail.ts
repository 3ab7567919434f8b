import { testGuardrail } from '@gatehouse/contract/policy-gateway/guardrails'
import type { FastifyInstance } from 'fastify'

import { answerText, readContext, readInput, route, sendAnswer } from '#http/bind.ts'
import { askGuardrail, type GuardrailOutcome } from '#moderation/guardrails/ask-guardrail.ts'
import type { SendQuestion } from '#moderation/guardrails/send-question.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import { createUuid } from '#platform/id.ts'
import type { Gate } from '#platform/lines/gate.ts'
import type { SecretBox } from '#platform/secrets.ts'

import { requireGuardrail } from './save-guardrail.ts'
import { openGuardrailSecret, type SavedGuardrail } from './saved-guardrail.ts'

export type TestingDeps = {
  db: Db
  now: Clock
  secretBox: SecretBox
  sendQuestion: SendQuestion
  /** Limits how many connections the reads of an organization can hold. */
  readGate: Gate
}

const usualText = 'This is a test: an administrator tried this guardrail.'

/** Not `bind`: while the guardrail takes its time, the other reads of the organization go on. */
export function serveTestGuardrail(app: FastifyInstance, deps: TestingDeps) {
  route(app, testGuardrail, async (request, reply, signal) => {
    const { params, body } = readInput(testGuardrail, request)
    const { principal, requestId } = readContext(testGuardrail, request)
    const { organizationId } = principal
    const guardrail = await deps.readGate(organizationId, () =>
      requireGuardrail(deps.db, organizationId, params.guardrail_id),
    )
    const asked = { text: body.text ?? usualText, requestId, signal }
    const startedAt = performance.now()
    const result = await ask(guardrail, asked, deps)
    const took_ms = Math.round(performance.now() - startedAt)
    return sendAnswer(testGuardrail, reply, answerText(testGuardrail, { ...result, took_ms }))
  })
}

type Asked = { text: string; requestId: string; signal: AbortSignal }

/** A guardrail has at most its deadline, however it is tested. */
async function ask(
  guardrail: SavedGuardrail,
  { text, requestId, signal }: Asked,
  { secretBox, sendQuestion: send, now }: TestingDeps,
) {
  const secret = openGuardrailSecret(guardrail, secretBox)
  if (secret === undefined) return failed('Its secret cannot be opened; save it once more.')
  const { organizationId, projectIds } = guardrail
  const question = {
    id: createUuid(now()),
    isTest: true,
    direction: 'request',
    organizationId,
    projectId: projectIds?.[0] ?? null,
    requestId,
    model: '',
    isLast: true,
    texts: [{ role: 'user', text }],
  } as const
  return toResult(await askGuardrail({ send, now }, { ...guardrail, secret }, question, signal))
}

function toResult(outcome: GuardrailOutcome) {
  if (outcome.kind === 'failed') return failed(outcome.failure.message)
  const { kind: action, code } = outcome
  const reason = outcome.kind === 'block' ? outcome.reason : null
  return { ok: true, action, code, reason, error: null }
}

const failed = (error: string) => ({
  ok: false,
  action: null,
  code: null,
  reason: null,
  error: error.slice(0, 500),
})
