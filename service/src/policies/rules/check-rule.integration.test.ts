import { afterAll, expect, test } from 'vitest'

import { threadEntry } from '#platform/assets.ts'
import { createThreadPool, type ThreadPool } from '#platform/thread-pool.ts'

import { createRuleCheck } from './check-rule.ts'
import { createPatternCosts } from './pattern-costs.ts'

const threads = createThreadPool({
  entry: threadEntry,
  threadsMax: 1,
  waitingMax: 100,
  waitingTotalMax: 100,
  graceMs: 0,
})
afterAll(() => threads.close())

/** Counts the patterns that are measured. */
function countRuns(pool: ThreadPool) {
  const measured: unknown[] = []
  const counting: ThreadPool = {
    ...pool,
    run(job, input, terms) {
      measured.push(input)
      return pool.run(job, input, terms)
    },
  }
  return { measured, counting }
}

/** The check, for one organization. */
function createCheck(pool: ThreadPool) {
  const check = createRuleCheck({ costs: createPatternCosts(pool) })
  return async (rule: string) => (await check(rule, 'org_1')).problem
}

const slow = 'a.{0,450}b.{0,450}c'

test('a pattern is measured once, and plain language never', async () => {
  const { measured, counting } = countRuns(threads)
  const check = createCheck(counting)
  const rule = 'cel: text.matches("weapon") || text.matches("(?i)gun") || text.matches("weapon")'
  expect(await check('Be kind.')).toBeNull()
  expect(await check('cel: text.contains("a")')).toBeNull()
  expect(measured).toEqual([])
  expect(await check(rule)).toBeNull()
  expect(await check(rule)).toBeNull()
  expect(measured).toEqual([{ pattern: 'weapon' }, { pattern: '(?i)gun' }])
})

test('a rule that is not accepted is not measured', async () => {
  const { measured, counting } = countRuns(threads)
  const check = createCheck(counting)
  expect(await check('cel: text.matches("weapon") && nobody')).toContain("no variable 'nobody'")
  expect(measured).toEqual([])
})

test('a pattern that takes long is refused with its place, and other rules are still checked', async () => {
  const check = createCheck(threads)
  expect(await check('cel: text.matches("weapon")')).toBeNull()
  expect(await check(`cel: text.matches("weapon") ||\n  text.matches(r"${slow}")`)).toBe(
    'is not accepted: line 2, column 16: the pattern takes too long on some texts',
  )
  expect(await check('cel: text.matches("other")')).toBeNull()
})

test('the complaint of the engine is passed on with its place', async () => {
  const check = createCheck(threads)
  expect(await check('cel: text.matches("[[:nothing:]]")')).toMatch(
    /^is not accepted: line 1, column 19: in the pattern, at its character 1: .+$/,
  )
})

test('patterns are compiled outside of the event loop, and a slow one is refused', async () => {
  const check = createCheck(threads)
  const costly = Array.from({ length: 60 }, (_, index) => String.raw`\pL{60}a${index}`)
  const patterns = [slow, ...costly]
  const rule = `cel: ${patterns.map((it) => `text.matches(r"${it}")`).join(' || ')}`
  const before = process.threadCpuUsage()
  expect(await check(rule)).toContain('line 1, column 19: the pattern takes too long')
  const { user, system } = process.threadCpuUsage(before)
  expect((user + system) / 1000).toBeLessThan(500)
})

test('patterns that together take long to compile are refused, also when they are known', async () => {
  const cost = { compileMs: 30, searchMs: 0, ownWordsMs: 0 }
  const check = createCheck({ ...threads, run: async () => cost })
  const ruleOf = (count: number) =>
    `cel: ${Array.from({ length: count }, (_, index) => `text.matches("a${index}")`).join(' || ')}`
  expect(await check(ruleOf(13))).toBeNull()
  expect(await check(ruleOf(14))).toContain('the patterns up to this one take too long to compile')
})

test.each([
  [{ compileMs: 100, searchMs: 5, ownWordsMs: 60 }, null],
  [{ compileMs: 101, searchMs: 0, ownWordsMs: 0 }, 'takes too long to compile'],
  [{ compileMs: 0, searchMs: 6, ownWordsMs: 0 }, 'takes too long on some texts'],
  [{ compileMs: 0, searchMs: 0, ownWordsMs: 61 }, 'takes too long on some texts'],
])('a pattern that costs %o', async (cost, problem) => {
  const check = createCheck({ ...threads, run: async () => cost })
  const found = await check('cel: text.matches("a")')
  expect(found).toEqual(problem === null ? null : expect.stringContaining(problem))
})

/** A thread that never answers. */
const hanging = new URL(
  `data:text/javascript,${encodeURIComponent(`
    import { parentPort } from 'node:worker_threads'
    parentPort.on('message', () => { for (;;); })
    parentPort.postMessage({ ready: true })
  `)}`,
)

test('a pattern whose measurement does not end is refused, and a pool without room is no complaint', async () => {
  const pool = createThreadPool({
    entry: hanging,
    threadsMax: 1,
    waitingMax: 2,
    waitingTotalMax: 2,
    graceMs: 0,
  })
  const check = createCheck(pool)
  const checks = ['a', 'b', 'c'].map((pattern) => check(`cel: text.matches("${pattern}")`))
  const results = await Promise.allSettled(checks)
  await pool.close()
  const isTooLong = { status: 'fulfilled', value: expect.stringContaining('takes too long') }
  const isOverloaded = { status: 'rejected', reason: { code: 'overloaded' } }
  expect(results).toMatchObject([isTooLong, isTooLong, isOverloaded])
})

test('an organization with many slow rules delays the check of another by one pattern', async () => {
  const pool = createThreadPool({
    entry: threadEntry,
    threadsMax: 1,
    waitingMax: 25,
    waitingTotalMax: 200,
    graceMs: 0,
  })
  const check = createRuleCheck({ costs: createPatternCosts(pool) })
  await check('cel: text.matches("warm")', 'org_1')
  const ended: string[] = []
  const note = (name: string) => () => void ended.push(name)
  const many = Array.from({ length: 10 }, async (_, index) =>
    check(`cel: text.matches("(?i)pattern${index}.{0,50}end")`, 'org_1').then(note('many')),
  )
  const one = check('cel: text.matches("(?i)other")', 'org_2').then(note('one'))
  await Promise.all([...many, one])
  await pool.close()
  expect(ended).toHaveLength(11)
  expect(ended.indexOf('one')).toBeLessThan(4)
})
