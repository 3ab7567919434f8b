import { expect, test } from 'vitest'

import type { Principal } from '#http/principal.ts'
import { ApiError } from '#platform/api-error.ts'
import { createTestClock } from '#testing/test-gateway.ts'

import { createLatelyRefused } from './lately-refused.ts'

const caller = (credentialId: string): Principal => ({
  ...{ kind: 'project_key', organizationId: 'org', projectId: 'proj', credentialId },
  ...{ permissions: new Set<never>(), plan: 'free', paidMicroUsd: 0 },
})
const told = { headers: { a: 'b' }, refusal: new ApiError('rate_limit_exceeded', 'Wait.') }

test('a refusal holds for its caller, until its wait is over and a second at most', () => {
  const clock = createTestClock()
  const lately = createLatelyRefused(clock)
  lately.note(caller('one'), { ...told, waitMs: 300 })
  lately.note(caller('two'), { ...told, waitMs: 60_000 })
  expect(lately.of(caller('one'))).toMatchObject(told)
  expect(lately.of(caller('three'))).toBeUndefined()
  clock.pass(300)
  expect(lately.of(caller('one'))).toBeUndefined()
  expect(lately.of(caller('two'))).toMatchObject(told)
  clock.pass(700)
  expect(lately.of(caller('two'))).toBeUndefined()
})
