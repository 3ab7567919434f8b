import * as contract from '@gatehouse/contract/policy-gateway/guardrails'
import type { z } from 'zod'

import type { createTestApi } from '#testing/test-api.ts'

type Api = Awaited<ReturnType<typeof createTestApi>>
type Sent = Omit<NonNullable<Parameters<Api['send']>[1]>, 'body'>
type Answer = Awaited<ReturnType<Api['send']>>

export const canary = `whsec_${Buffer.from('canary-guardrail-7b1e-secret').toString('base64')}`
export const usual = { name: 'House', url: 'https://guard.example.com/check', secret: canary }

/** The guardrail in an answer; the members of an error are undefined then. */
const guardrailIn = ({ status, headers, body }: Answer) => ({
  status,
  headers,
  error: body.error,
  guardrail: (body as unknown as { guardrail: contract.Guardrail }).guardrail,
})

/** The calls of guardrails, as an administrator makes them. */
export const guardrailCalls = (api: Api) => ({
  create: async (body: object = {}, sent: Sent = {}) =>
    guardrailIn(await api.send(contract.createGuardrail, { ...sent, body: { ...usual, ...body } })),
  read: async (id: string, sent: Sent = {}) =>
    guardrailIn(
      await api.send(contract.retrieveGuardrail, { ...sent, params: { guardrail_id: id } }),
    ),
  edit: async (id: string, body: object, sent: Sent = {}) =>
    guardrailIn(
      await api.send(contract.updateGuardrail, { ...sent, params: { guardrail_id: id }, body }),
    ),
  remove: (id: string, sent: Sent = {}) =>
    api.send(contract.deleteGuardrail, { ...sent, params: { guardrail_id: id } }),
  list: async (query: Record<string, string> = {}) =>
    (await api.send(contract.listGuardrails, { query })).body as unknown as {
      data: contract.Guardrail[]
      has_more: boolean
    },
  async ask(id: string, body: object = {}, sent: Sent = {}) {
    const params = { guardrail_id: id }
    const { status, body: answer } = await api.send(contract.testGuardrail, {
      ...sent,
      params,
      body,
    })
    const result = answer as unknown as z.infer<typeof contract.testGuardrail.response>
    return { status, error: answer.error, result }
  },
})
