import { sizeOf } from '@gatehouse/tools/testing/size-of'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'

import type { Db } from '#platform/database.ts'
import {
  findImbalances,
  holdOf,
  letExpire,
  openOrganization,
  postOnce,
  readCredits,
  settlementOf,
  type Subject,
} from '#testing/credit-calls.ts'
import * as model from '#testing/credit-model.ts'
import { connectPatiently, createTestDatabase } from '#testing/test-database.ts'

import { createHoldQueue, type HoldQueue } from './hold-queue.ts'
import { sweepHolds } from './sweep-store.ts'

// The hold queue and a model without a database, step by step on random sequences: every answer, balance, entry,
// sum and event must be the same. Many organizations go through one queue at once, so that each statement
// has several of them. CREDIT_SEQUENCES sets how many, CREDIT_SEED repeats a run.

const sequences = sizeOf({ usual: 1000, long: 10_000, variable: 'CREDIT_SEQUENCES' })
const seed = Number(process.env['CREDIT_SEED'] ?? Date.now() % 2 ** 31)
/** At most one batch of holds in all, or a burst could be torn apart and be decided in another order. */
const atOnce = 32
const burstMax = 4

let database: Awaited<ReturnType<typeof createTestDatabase>>
let db: Db
let queue: HoldQueue
beforeAll(async () => {
  database = await createTestDatabase()
  db = connectPatiently({ url: database.url, poolSize: 10 })
  queue = createHoldQueue({ db, reserveMaxMs: 20_000 })
})
afterAll(async () => {
  await db.destroy()
  await database[Symbol.asyncDispose]()
})

/** Text that has a meaning somewhere on its way must not have one here. */
const subjects: readonly Subject[] = [
  { projectId: 'proj_1', keyId: 'key_1', model: 'model-1' },
  { projectId: null, keyId: 'key_1', model: 'model-1' },
  { projectId: 'proj_2', keyId: `k"'\\,{}[]\n`, model: '模型 🚂 \\x00 \\u0041 $1' },
]
const calls = 16
/** What each call holds is fixed: every repetition says the same. */
const holdAmount = (call: number) => BigInt([0, 1, 5, 10, 20, 30, 60, 90][call % 8]!)
const subjectOf = (call: number) => subjects[call % subjects.length]!

const call = fc.nat(calls - 1)
const amount = fc.integer({ min: 0, max: 120 }).map(BigInt)
const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('reserve' as const),
      calls: fc.array(call, { minLength: 1, maxLength: burstMax }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('settle' as const),
      call,
      isAny: fc.nat(3).map((number) => number === 0), // or else one that is held
      amount: fc.option(amount), // null: exactly what was held
      inputTokens: fc.nat(1000),
      outputTokens: fc.nat(1000),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('expire' as const), call }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom('grant' as const, 'refund' as const),
      id: fc.nat(5).map((number) => `post-${number}`),
      amount,
    }),
  },
)
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

type Sequence = { organizationId: string; expected: model.CreditModel }
const met = { held: 0, refused: 0, inTime: 0, writtenOff: 0, late: 0, swept: 0, posted: 0 }

async function take(each: Step, sequence: Sequence): Promise<void> {
  const { organizationId, expected } = sequence
  switch (each.kind) {
    case 'reserve':
      return takeReserve(each, sequence)
    case 'settle':
      return takeSettle(each, sequence)
    case 'expire': {
      const id = `req_${heldOf(expected, each.call)}`
      if (expected.holds.has(id)) met.swept++
      model.expire(expected, id)
      await letExpire(db, organizationId, id)
      // Another sequence may be sweeping this account at the moment.
      do await sweepHolds(db)
      while ((await readCredits(db, organizationId)).holds.has(id))
      return
    }
    default: {
      met.posted++
      model.post(expected, each.id, each)
      await postOnce(db, organizationId, each)
    }
  }
}

/** Holds that are asked for together are decided as if one came after the other. */
async function takeReserve(each: Extract<Step, { kind: 'reserve' }>, sequence: Sequence) {
  const { organizationId, expected } = sequence
  const answers = await Promise.all(
    each.calls.map((call) =>
      queue.reserve(
        holdOf({
          organizationId,
          id: `req_${call}`,
          amount: holdAmount(call),
          subject: subjectOf(call),
        }),
      ),
    ),
  )
  const verdicts = each.calls.map((call) =>
    model.reserve(expected, `req_${call}`, holdAmount(call)),
  )
  expect(answers.map(({ isHeld }) => ({ isHeld }))).toEqual(verdicts)
  for (const { isHeld } of verdicts) met[isHeld ? 'held' : 'refused']++
  const last = answers.at(-1)!
  if (!last.isHeld) expect(last.available).toBeGreaterThanOrEqual(0n)
  if (each.calls.length === 1 && !last.isHeld) {
    const { posted, held } = expected
    expect(last).toEqual({ isHeld: false, available: posted - held, held })
  }
}

async function takeSettle(each: Extract<Step, { kind: 'settle' }>, sequence: Sequence) {
  const { organizationId, expected } = sequence
  const { inputTokens, outputTokens } = each
  const call = each.isAny ? each.call : heldOf(expected, each.call)
  const [id, subject] = [`req_${call}`, subjectOf(call)]
  const amount = each.amount ?? holdAmount(call)
  const entriesBefore = expected.entries.size
  const settled = model.settle(
    expected,
    { id, inputTokens, outputTokens, subject: Object.values(subject).join(' ') },
    amount,
  )
  if (expected.entries.size === entriesBefore + 2) met.writtenOff++
  met[expected.entries.has(`${id}:late`) ? 'late' : 'inTime']++
  const settlement = settlementOf({ organizationId, id, amount, subject }, each)
  expect(await queue.settle(settlement)).toEqual(settled)
}

function heldOf({ holds }: model.CreditModel, number: number): number {
  const held = [...holds.keys()][number % Math.max(1, holds.size)]
  return held === undefined ? number : Number(held.slice('req_'.length))
}

const sorted = (texts: readonly string[]) => texts.toSorted((one, two) => (one < two ? -1 : 1))

async function expectNoDifference(lane: number, numRuns: number) {
  let runs = 0
  const property = fc.asyncProperty(
    fc.array(step, { minLength: 4, maxLength: 16 }),
    async (steps) => {
      const organizationId = `org_${lane}_${runs++}`
      await openOrganization(db, organizationId)
      const sequence = { organizationId, expected: model.createCreditModel() }
      await take({ kind: 'grant', id: 'first', amount: 100n }, sequence)
      for (const each of steps) await take(each, sequence)
      const found = await readCredits(db, organizationId)
      const { expected } = sequence
      expect({ ...found, events: sorted(found.events) }).toEqual({
        ...expected,
        events: sorted(expected.events),
      })
    },
  )
  await fc.assert(property, { numRuns, seed: seed + lane })
}

test(`${sequences} random sequences: the hold queue and the model never differ`, async () => {
  const startedAt = performance.now()
  console.log(`seed ${seed}`)
  const runs = Math.ceil(sequences / atOnce)
  await Promise.all(Array.from({ length: atOnce }, (_, lane) => expectNoDifference(lane, runs)))
  const seconds = Math.round((performance.now() - startedAt) / 1000)
  console.log(`seed ${seed}, ${runs * atOnce} sequences in ${seconds} s`, met)
  for (const count of Object.values(met)) expect(count).toBeGreaterThan(sequences / 20)
  expect(await findImbalances(db)).toEqual([])
}, 600_000)
