import { expect, test } from 'vitest'

import type { Principal } from '#http/principal.ts'
import { ApiError } from '#platform/api-error.ts'
import { createTestClock } from '#testing/test-gateway.ts'

import { createRecentRefusals } from './recent-refusals.ts'

const caller = (credentialId: string): Principal => ({
  kind: 'project_key',
  organizationId: 'org',
  projectId: 'proj',
  credentialId,
  subject: credentialId,
  userId: null,
  projectName: null,
  isBoundToProject: true,
  permissions: new Set<never>(),
  plan: 'free',
  paidMicroUsd: 0,
  limitOverrides: null,
  budgets: null,
  allowedModels: null,
  projectLabels: null,
  member: null,
  session: null,
})
const answer = { headers: { a: 'b' }, refusal: new ApiError('rate_limit_exceeded', 'Wait.') }

test('a refusal is repeated to its caller until the wait is over, for a second at most', () => {
  const clock = createTestClock()
  const refusals = createRecentRefusals(clock)
  refusals.record(caller('one'), { ...answer, waitMs: 300 })
  refusals.record(caller('two'), { ...answer, waitMs: 60_000 })
  expect(refusals.of(caller('one'))).toMatchObject(answer)
  expect(refusals.of(caller('three'))).toBeUndefined()
  clock.pass(300)
  expect(refusals.of(caller('one'))).toBeUndefined()
  expect(refusals.of(caller('two'))).toMatchObject(answer)
  clock.pass(700)
  expect(refusals.of(caller('two'))).toBeUndefined()
})
