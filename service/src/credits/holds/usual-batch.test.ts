import { expect, test } from 'vitest'

import { holdOf, settlementOf } from '#testing/credit-calls.ts'

import type { CreditMove } from './credit-move.ts'
import { answerUsual, sumByAccount } from './usual-batch.ts'

const hold = (organizationId: string, id: string, amount: bigint): CreditMove => ({
  kind: 'hold',
  organizationId,
  id,
  call: holdOf({ organizationId, id, amount }),
})
const settle = (organizationId: string, id: string, amount: bigint): CreditMove => ({
  kind: 'settle',
  organizationId,
  id,
  call: settlementOf({ organizationId, id, amount }),
})

const moves = [
  hold('org_1', 'a', 10n),
  settle('org_1', 'b', 5n),
  settle('org_2', 'c', 7n),
  hold('org_1', 'd', 20n),
  settle('org_1', 'e', 1n),
]

test('the sums of a batch by account', () => {
  expect(sumByAccount(moves)).toEqual(
    new Map([
      ['org_1', { charged: 6n, held: 30n }],
      ['org_2', { charged: 7n, held: null }],
    ]),
  )
})

test('a hold of nothing is a hold', () => {
  expect(sumByAccount([hold('org_1', 'a', 0n)]).get('org_1')).toEqual({ charged: 0n, held: 0n })
})

test('each item is answered in its turn, settlements before holds', () => {
  // Before the batch: 100 posted; 40 held, of which the settlements set 15 free.
  const after = new Map([
    ['org_1', { posted: 94n, held: 55n }],
    ['org_2', { posted: 3n, held: 0n }],
  ])
  expect(answerUsual(moves, sumByAccount(moves), after)).toEqual([
    { outcome: 'held', amount: 59n, rest: 35n },
    { outcome: 'settled', amount: 5n, rest: 95n },
    { outcome: 'settled', amount: 7n, rest: 3n },
    { outcome: 'held', amount: 39n, rest: 55n },
    { outcome: 'settled', amount: 1n, rest: 94n },
  ])
})

test('an account that is missing from the answer is an error', () => {
  expect(() => answerUsual(moves, sumByAccount(moves), new Map())).toThrow('org_1')
})
