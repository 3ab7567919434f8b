import { afterAll, expect, test } from 'vitest'

import { threadEntry } from '#platform/assets.ts'
import { createThreadPool } from '#platform/thread-pool.ts'
import { longestTurnMs } from '#policies/guard/testing/longest-turn.ts'
import {
  answerFacts,
  patternEngine,
  ruleSetOf,
  someAsker,
} from '#policies/guard/testing/rule-set-of.ts'

import { evaluateInSlices } from './rule-set.ts'
import { withThreads } from './search-in-threads.ts'

const poolOptions = {
  entry: threadEntry,
  threadsMax: 1,
  waitingMax: 2,
  waitingTotalMax: 2,
  graceMs: 0,
}
const threads = createThreadPool(poolOptions)
afterAll(() => threads.close())

const set = ruleSetOf(
  [
    'text.matches("x[^y]*w")',
    String.raw`text.matches(r"\d+-\d+")`,
    'text.matches("(?i)ignore.*instructions")',
    'text.matches("a{3}b")',
  ],
  withThreads(patternEngine, threads),
)
const length = 4 * 1024 * 1024
const slowText = 'ab 1 '.repeat(length / 5)

test('patterns without a widest match hold the event loop under 50 ms, however long the text is', async () => {
  const texts = {
    none: 'ab 1 '.repeat(length / 5),
    first: `x${' ab'.repeat(length / 3 - 2)}w`,
    all: `ignore x 1-2 aaab${' z'.repeat(length / 2 - 30)} Instructions w`,
  }
  const expected = { none: [], first: [0], all: [0, 1, 2, 3] }
  const found: Record<string, number[]> = {}
  for (const [name, text] of Object.entries(texts)) {
    let longestMs = Infinity
    // A garbage collection may fall into one round, but not into three.
    for (let round = 0; round < 3 && longestMs > 50; round++) {
      longestMs = await longestTurnMs(async () => {
        const outcomes = await evaluateInSlices(set.openTexts(answerFacts, [text]), someAsker)
        found[name] = outcomes.filter(({ isMatch }) => isMatch).map(({ index }) => index)
      })
    }
    expect.soft({ name, isQuick: longestMs < 50, longestMs }).toMatchObject({ isQuick: true })
  }
  expect(found).toEqual(expected)
})

test('where no thread takes a search, nothing is decided', async () => {
  const many = Array.from({ length: 8 }, () =>
    evaluateInSlices(set.openTexts(answerFacts, [slowText]), someAsker),
  )
  const results = await Promise.allSettled(many)
  const refused = results.filter((result) => result.status === 'rejected')
  expect(refused.length).toBeGreaterThan(0)
  for (const { reason } of refused) expect(reason).toMatchObject({ status: 529 })
})

test('short texts need no thread', async () => {
  const elsewhere = { ...patternEngine, searchElsewhere: () => Promise.reject(new Error('away')) }
  const short = ruleSetOf(['text.matches("x[^y]*w")'], elsewhere)
  const open = short.openTexts(answerFacts, [`x${'a'.repeat(8000)}w`])
  const [outcome] = await evaluateInSlices(open, someAsker)
  expect(outcome).toMatchObject({ isMatch: true })
})

const evaluateFor = (owner: string, signal = new AbortController().signal) =>
  evaluateInSlices(set.openTexts(answerFacts, [slowText]), { owner, signal })

test('a caller that hangs up frees its place', async () => {
  const caller = new AbortController()
  const hungUp = new Error('the caller has hung up')
  const searching = evaluateFor('org_1', caller.signal)
  caller.abort(hungUp)
  await expect(searching).rejects.toBe(hungUp)
  expect(await evaluateFor('org_2')).toHaveLength(4)
})

test('an organization with many searches does not keep another one waiting', async () => {
  const fair = createThreadPool({ ...poolOptions, waitingMax: 2, waitingTotalMax: 20 })
  const shared = ruleSetOf(['text.matches("x[^y]*w")'], withThreads(patternEngine, fair))
  const evaluate = (owner: string) =>
    evaluateInSlices(shared.openTexts(answerFacts, [slowText]), { ...someAsker, owner })
  const order: string[] = []
  const note = (owner: string) =>
    evaluate(owner).then(
      () => order.push(owner),
      () => undefined,
    )
  await Promise.all(['busy', 'busy', 'busy', 'busy', 'other'].map(note))
  expect(order).toContain('other')
  await fair.close()
})
