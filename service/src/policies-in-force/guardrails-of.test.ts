import { expect, test } from 'vitest'

import type { GuardrailInForce } from '#gateway-config/guardrails/open-guardrails.ts'

import { guardrailsOf } from './guardrails-of.ts'
import { makeSnapshot } from './snapshot.ts'

function guardrail(id: string, changes: Partial<GuardrailInForce> = {}): GuardrailInForce {
  const asked = {
    id,
    name: `Guardrail ${id}`,
    url: 'https://guard.example.com',
    mode: 'enforcing',
    onError: 'allow',
    deadlineMs: 2000,
  } as const
  return {
    ...asked,
    projectIds: null,
    sealedSecret: 'ab',
    asked: { ...asked, secret: 'whsec_' },
    ...changes,
  }
}

const asked = (projectId: string | null, ...guardrails: readonly GuardrailInForce[]) =>
  guardrailsOf(makeSnapshot('org_1', 1, [], { guardrails }), projectId).map(({ id }) => id)

test('calls of a project meet its guardrails and those of all projects, in their order', () => {
  const all = [
    guardrail('one', { projectIds: ['proj_1', 'proj_2'] }),
    guardrail('all'),
    guardrail('two', { projectIds: ['proj_2'] }),
  ]
  expect(asked('proj_1', ...all)).toEqual(['one', 'all'])
  expect(asked('proj_2', ...all)).toEqual(['one', 'all', 'two'])
  expect(asked('proj_3', ...all)).toEqual(['all'])
  expect(asked(null, ...all)).toEqual(['all'])
  expect(asked('proj_1')).toEqual([])
})

test('calls in the scope of an enforcing guardrail that cannot be asked are refused, whatever its on_error', () => {
  const broken = guardrail('broken', { asked: null, projectIds: ['proj_1'] })
  expect(() => asked('proj_1', broken)).toThrow(
    expect.objectContaining({
      code: 'policy_evaluation_unavailable',
      message: expect.stringContaining('Guardrail broken') as string,
    }),
  )
  expect(asked('proj_2', broken, guardrail('all'))).toEqual(['all'])
  const watching = guardrail('watching', { asked: null, mode: 'monitoring' })
  expect(asked('proj_1', watching, guardrail('all'))).toEqual(['all'])
})
