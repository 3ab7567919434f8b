import { expect, test } from 'vitest'

import { openEveryWay } from './testing/every-way.ts'
import { inAnswer, inRequest, outcomesOf } from './testing/outcomes-on-every-way.ts'

// Rules that count personal data and secrets, on every way to a model.

const patience = { timeout: 300_000 }

test.each([
  ['cel: pii("CARD") > 0', 'Pay with 4111 1111 1111 1111, please.', 'Not 4111 1111 1111 1112.'],
  ['cel: pii("EMAIL") >= 2', 'From a@example.com to b@example.com.', 'From a@example.com to b.'],
  // Only the whole text decides it.
  ['cel: pii("EMAIL") == 1', 'From a@example.com to b.', 'From a@example.com to b@example.com.'],
])('%s blocks requests and answers on every way', patience, async (rule, broken, harmless) => {
  const { ask, putInForce } = await openEveryWay()
  await putInForce({ mode: 'enforcing', rule, direction: 'both' }, false)
  for (const place of [inRequest, inAnswer]) {
    expect(await outcomesOf(ask, place(broken))).toEqual(new Set(['blocked']))
    expect(await outcomesOf(ask, place(harmless))).toEqual(new Set(['served']))
  }
})

test('a monitoring rule that counts lets everything pass', patience, async () => {
  const { ask, putInForce } = await openEveryWay()
  await putInForce({ mode: 'monitoring', rule: 'cel: pii("CARD") > 0' }, false)
  for (const place of [inRequest, inAnswer]) {
    expect(await outcomesOf(ask, place('4111 1111 1111 1111'))).toEqual(new Set(['served']))
  }
})
