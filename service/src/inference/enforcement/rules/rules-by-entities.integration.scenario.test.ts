import { test } from 'vitest'

import {
  expectBlockedOnEveryWay,
  expectOnlyMonitored,
} from '#inference/enforcement/testing/outcomes-on-every-way.ts'

// Rules that count personal data and secrets, on every way to a model.

const patience = { timeout: 300_000 }

test.each([
  ['cel: pii("CARD") > 0', 'Pay with 4111 1111 1111 1111, please.', 'Not 4111 1111 1111 1112.'],
  ['cel: pii("EMAIL") >= 2', 'From a@example.com to b@example.com.', 'From a@example.com to b.'],
  // Only the whole text decides it.
  ['cel: pii("EMAIL") == 1', 'From a@example.com to b.', 'From a@example.com to b@example.com.'],
])('%s blocks requests and answers on every way', patience, (rule, broken, harmless) =>
  expectBlockedOnEveryWay(rule, { broken, harmless }),
)

test('a monitoring rule that counts lets everything pass', patience, () =>
  expectOnlyMonitored('cel: pii("CARD") > 0', '4111 1111 1111 1111'),
)
