import { afterAll, describe, expect, test } from 'vitest'

import { threadEntry } from '#platform/assets.ts'
import { createThreadPool } from '#platform/thread-pool.ts'
import { longestTurnMs } from '#policies/guard/testing/longest-turn.ts'
import { patternCostsOf } from '#policies/guard/testing/pattern-costs-of.ts'
import {
  answerFacts,
  patternEngine,
  ruleSetOf,
  someAsker,
} from '#policies/guard/testing/rule-set-of.ts'
import { re2jsEngine } from '#text/re2js-engine.ts'

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

const quick = patternCostsOf(() => 0.1)
const slow = patternCostsOf(() => 20)

const set = ruleSetOf(
  [
    'text.matches("x[^y]*w")',
    String.raw`text.matches(r"\d+-\d+")`,
    'text.matches("(?i)ignore.*instructions")',
    'text.matches("a{3}b")',
  ],
  withThreads(patternEngine, { threads, costs: quick }),
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

test('short texts need no thread where patterns are quick', async () => {
  const away = { ...threads, run: () => Promise.reject(new Error('away')) }
  const evaluate = async (costs: typeof quick) => {
    const engine = withThreads(patternEngine, { threads: away, costs })
    const short = ruleSetOf(['text.matches("x[^y]*w")', 'text.matches("ab")'], engine)
    const open = short.openTexts(answerFacts, [`x${'a'.repeat(8000)}w`])
    return evaluateInSlices(open, someAsker)
  }
  expect(await evaluate(quick)).toMatchObject([{ isMatch: true }, { isMatch: false }])
  await expect(evaluate(slow)).rejects.toThrow('away')
  // Their cost has not been measured yet.
  await expect(evaluate(patternCostsOf(() => undefined))).rejects.toThrow('away')
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
  const engine = withThreads(patternEngine, { threads: fair, costs: quick })
  const shared = ruleSetOf(['text.matches("x[^y]*w")'], engine)
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

const re2jsThread = new URL('../guard/testing/re2js-thread.ts', import.meta.url)

/** Each `alpha` may begin a match of every pattern, and none is completed. */
function writeHostile(length: number, seed: number): string {
  const words = ['alpha', 'lo', 'a', 'of']
  let [text, state] = ['omega ', seed]
  while (text.length < length) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    text += `${words[(state >>> 16) % words.length]} `
  }
  return text
}

describe.each([
  [patternEngine, threadEntry],
  [re2jsEngine, re2jsThread],
])('sixty patterns that are accepted one by one ($name)', (engine, entry) => {
  const pool = createThreadPool({ ...poolOptions, entry, waitingMax: 100, waitingTotalMax: 100 })
  afterAll(() => pool.close())
  const rules = Array.from(
    { length: 60 },
    (_, index) => `text.matches("alpha.{0,${45 + index}}omega")`,
  )
  const shared = withThreads(engine, { threads: pool, costs: slow })
  const many = ruleSetOf(rules, shared)
  const evaluate = (text: string, owner = 'org_1') =>
    evaluateInSlices(many.openTexts(answerFacts, [text]), { ...someAsker, owner })

  test(
    'hold the event loop hardly longer than a text that is easy for them',
    { timeout: 60_000 },
    async () => {
      await evaluate('the first one')
      const easyMs = await longestTurnMs(() => evaluate('the quick red fox '.repeat(450)))
      let hostileMs = Infinity
      // A garbage collection may fall into one round, but not into three.
      for (let round = 0; round < 3 && hostileMs > easyMs + 25; round++) {
        const text = writeHostile(8000, round + 1)
        hostileMs = await longestTurnMs(() => evaluate(text))
      }
      expect(hostileMs).toBeLessThan(easyMs + 25)
    },
  )

  test('let another organization have the thread in between', { timeout: 60_000 }, async () => {
    const ended: string[] = []
    const note = (name: string) => () => void ended.push(name)
    const hostile = evaluate(writeHostile(8000, 9), 'org_1').then(note('hostile'))
    const one = ruleSetOf(['text.matches("a.b")'], shared)
    const open = one.openTexts(answerFacts, ['the quick red fox '.repeat(50)])
    const other = evaluateInSlices(open, { ...someAsker, owner: 'org_2' }).then(note('other'))
    await Promise.all([hostile, other])
    expect(ended).toEqual(['other', 'hostile'])
  })

  test('are found wherever they are', { timeout: 60_000 }, async () => {
    const far = `${'a quick red fox '.repeat(1200)}alpha${'x'.repeat(60)}omega`
    const outcomes = await evaluate(far)
    const matching = outcomes.filter(({ isMatch }) => isMatch).map(({ index }) => index)
    expect(matching).toEqual(Array.from({ length: 45 }, (_, index) => 15 + index))
  })
})

/** Threads that end, or that never answer. */
const broken = (work: string) =>
  new URL(
    `data:text/javascript,${encodeURIComponent(`
      import { parentPort } from 'node:worker_threads'
      parentPort.on('message', () => { ${work} })
      parentPort.postMessage({ ready: true })
    `)}`,
  )

test('a thread that dies decides nothing, and the next search gets another', async () => {
  const pool = createThreadPool({ ...poolOptions, entry: broken('process.exit(1)') })
  const engine = withThreads(patternEngine, { threads: pool, costs: slow })
  const shared = ruleSetOf(['text.matches("a.b")'], engine)
  for (let round = 0; round < 2; round++) {
    const evaluating = evaluateInSlices(shared.openTexts(answerFacts, ['a b']), someAsker)
    await expect(evaluating).rejects.toThrow('The thread has died')
  }
  await pool.close()
})

test('a thread that hangs decides nothing', { timeout: 30_000 }, async () => {
  const pool = createThreadPool({ ...poolOptions, entry: broken('for (;;);') })
  const engine = withThreads(patternEngine, { threads: pool, costs: slow })
  const shared = ruleSetOf(['text.matches("a.b")'], engine)
  const evaluating = evaluateInSlices(shared.openTexts(answerFacts, ['a b']), someAsker)
  await expect(evaluating).rejects.toMatchObject({ status: 529 })
  await pool.close()
})
