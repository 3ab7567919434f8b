import type * as contract from '../policy-gateway/guardrails.ts'
import { type ExampleOf, ids } from './example.ts'

const guardrail: contract.Guardrail = {
  id: ids.guardrail,
  object: 'policy_gateway.guardrail',
  name: 'Customer data',
  url: 'https://guard.example.com/check',
  secret: '********',
  enabled: true,
  mode: 'monitoring',
  on_error: 'refuse',
  deadline_ms: 2000,
  project_ids: null,
  managed_by: null,
  created_at: '2026-11-02T09:00:00Z',
  updated_at: '2026-11-02T09:00:00Z',
}
const params = { guardrail_id: ids.guardrail }

export const guardrailExamples = {
  listGuardrails: {
    query: { limit: '20' },
    answer: {
      object: 'list',
      data: [guardrail],
      has_more: false,
      first_id: ids.guardrail,
      last_id: ids.guardrail,
    },
  } satisfies ExampleOf<typeof contract.listGuardrails>,
  createGuardrail: {
    body: {
      name: guardrail.name,
      url: guardrail.url,
      secret: 'whsec_Zm9yIHRoZSBleGFtcGxlIG9ubHksIG5vdCByYW5kb20=',
    },
    answer: { guardrail },
  } satisfies ExampleOf<typeof contract.createGuardrail>,
  retrieveGuardrail: {
    params,
    answer: { guardrail },
  } satisfies ExampleOf<typeof contract.retrieveGuardrail>,
  updateGuardrail: {
    params,
    body: { mode: 'enforcing', deadline_ms: 1000 },
    answer: { guardrail: { ...guardrail, mode: 'enforcing', deadline_ms: 1000 } },
  } satisfies ExampleOf<typeof contract.updateGuardrail>,
  deleteGuardrail: {
    params,
    answer: { id: ids.guardrail, object: 'policy_gateway.guardrail.deleted', deleted: true },
  } satisfies ExampleOf<typeof contract.deleteGuardrail>,
  testGuardrail: {
    params,
    body: { text: 'My card is 4111 1111 1111 1111.' },
    answer: {
      ok: true,
      action: 'block',
      code: 'CARD_NUMBER',
      reason: 'The text has the number of a card.',
      took_ms: 38,
      error: null,
    },
  } satisfies ExampleOf<typeof contract.testGuardrail>,
}
