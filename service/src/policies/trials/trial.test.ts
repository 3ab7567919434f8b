import type { PolicyContent } from '@gatehouse/contract/policy'
import { expect, test } from 'vitest'

import { finish } from '#platform/steps/steps.ts'
import { compileEvaluable } from '#policies/compile.ts'
import { longestTurnMs } from '#policies/guard/testing/longest-turn.ts'
import { someAsker } from '#policies/guard/testing/rule-set-of.ts'
import { loadPatternEngine } from '#text/pattern-engine.ts'
import { judgeGrid } from '#text/windows/window-grid.ts'

import type { JudgeText } from './judge-trial.ts'
import type { ScoreText } from './score-trial.ts'
import { createTrial } from './trial.ts'

const engine = loadPatternEngine()

/** A text hits a category where it has its name. */
const scoreText: ScoreText = async ({ text }, categories) =>
  new Map([...categories].map((category) => [category, text.includes(category) ? 0.9 : 0.1]))

/** Finds fault with texts that say so themselves. */
const judgeText: JudgeText = async (_, { text }) => ({
  score: text.includes('silence') ? null : text.includes('rude') ? 9000 : 100,
  calls: 1,
})

function trialOf(expression: string, changes: Partial<PolicyContent> = {}) {
  const content: PolicyContent = {
    rule: `cel: ${expression}`,
    direction: 'both',
    mode: 'enforcing',
    scope: 'organization',
    project_ids: [],
    match_threshold_basis_points: null,
    ...changes,
  }
  const rule = compileEvaluable(content.rule, engine)
  if ('problem' in rule) throw new Error(rule.problem)
  const tried = { ...content, policyId: 'pol_1', version: 0 }
  return finish(
    createTrial(tried, rule, { engine, scoreText, gridOf: () => judgeGrid, judgeText }, someAsker),
  )
}

const answer = (text: string) => ({ text, direction: 'response' as const })
const request = (text: string) => ({ text, direction: 'request' as const })

/** Where an answer is cut, or null. */
const cutOf = async (expression: string, text: string) =>
  (await trialOf(expression).explain(answer(text))).cut

test.each([
  ['text.matches("b.d")', 'a bad bed', 2],
  ['text.contains("bed")', 'a bad bed', 6],
  ['text.contains("bed") || text.matches("b.d")', 'a bad bed', 2],
  ['text.contains("bed") && text.matches("b.d")', 'a bad bed', 6],
  ['text.containsAny(["x", "ad"])', 'a bad bed', 3],
  ['text.size() >= 3', '👍👍👍👍', 4],
  ['text.size() > 3', 'abcdef', 3],
  ['true', 'abc', 0],
  ['text.contains("bed") || model == ""', 'a bad bed', 0],
  ['!text.contains("x")', 'a bad bed', 0], // only the whole answer decides
  ['text.matches("bed$")', 'a bad bed', 0],
  ['text.contains("x")', 'a bad bed', null],
  ['score("hate") > 0.5', 'some hate', 0],
  ['score("hate") > 0.5', `${'a word '.repeat(20)}hate`, 97], // the second window begins there
  ['score("hate") > 0.5 && text.contains("some")', 'some hate', 0],
  ['score("hate") + score("illicit") > 1.7', `${'hate '.repeat(40)} illicit`, 0],
  ['score("hate") > 0.95', 'some hate', null],
])('%s cuts %j at %j', async (expression, text, cut) => {
  expect(await cutOf(expression, text)).toBe(cut)
})

test('offsets are those of the text as it was sent', async () => {
  const text = 'one\u200b  \n b\u200dad \u{1d41b}ad' // 'one bad bad' after normalising
  const { matches, cut } = await trialOf('text.matches("bad")').explain(answer(text))
  const [first, second] = matches
  expect(text.slice(first!.start, first!.end)).toBe('b\u200dad')
  expect(text.slice(second!.start, second!.end)).toBe('\u{1d41b}ad')
  expect(cut).toBe(first!.start)
})

test('a request is refused as a whole, so it has no cut', async () => {
  const result = await trialOf('text.contains("bad")').explain(request('a bad bed'))
  expect(result).toMatchObject({ score: 10_000, matched: true, cut: null, judge_calls: 0 })
  expect(result.matches).toEqual([{ start: 2, end: 5, pattern: 'bad' }])
})

test('matches are in the order of the text, at most 50, patterns and literals alike', async () => {
  const trial = trialOf('text.matches("[0-9]") || text.containsAny(["a1", "zz"])')
  const few = await trial.explain(request('a1 2'))
  expect(few.matches.map(({ start, pattern }) => [start, pattern])).toEqual([
    [0, 'a1'],
    [1, '[0-9]'],
    [3, '[0-9]'],
  ])
  const many = await trial.explain(request('a1'.repeat(500)))
  expect(many.matches).toHaveLength(50)
  expect(many.matches.at(-1)!.start).toBeLessThan(60)
})

test('a pattern that matches nothing at all ends', async () => {
  const trial = trialOf('text.matches("x*")')
  const { matches } = await trial.explain(request('y'.repeat(20_000)))
  expect(matches.length).toBeLessThanOrEqual(50)
})

test('a text of a direction that the policy does not check never matches', async () => {
  const trial = trialOf('text.contains("bad")', { direction: 'response' })
  const result = await trial.explain(request('bad'))
  expect(result).toMatchObject({ score: 0, matched: false, matches: [], cut: null })
  expect(await trial.explain(answer('bad'))).toMatchObject({ matched: true, cut: 0 })
})

test('the threshold decides, 5000 without one', async () => {
  const score = (threshold: number | null) =>
    trialOf('text.size()', { match_threshold_basis_points: threshold }).judge(request('12345'))
  expect(await score(5)).toMatchObject({ score: 5, isMatch: true })
  expect(await score(6)).toMatchObject({ score: 5, isMatch: false })
  expect(await score(null)).toMatchObject({ isMatch: false })
})

test('an error matches when the policy is enforcing, and not when it is monitoring', async () => {
  const failing = 'text.contains("bad") && 1 / input_tokens == 1'
  const judge = (mode: PolicyContent['mode']) => trialOf(failing, { mode }).judge(request('bad'))
  expect(await judge('enforcing')).toMatchObject({ score: 10_000, isMatch: true })
  expect(await judge('monitoring')).toMatchObject({ score: 0, isMatch: false })
})

test.each([
  ['text.matches("a{7}")', 'both', 7],
  ['text.matches("a{7}") && model == "never"', 'both', 7],
  ['text.contains("four")', 'response', 3],
  ['text.matches("a+")', 'response', 'full'],
  ['text.size() < 3', 'both', 'full'],
  ['text.matches("a{7}")', 'request', 'none'],
  ['model == "x"', 'both', 'none'],
] as const)('%s, direction %s, holds back %j', (expression, direction, holdback) => {
  expect(trialOf(expression, { direction }).holdback).toBe(holdback)
  expect(trialOf(expression, { direction, mode: 'monitoring' }).holdback).toBe(holdback)
})

test('long texts are explained as short ones are, and hold the event loop under 50 ms', async () => {
  const expression = String.raw`text.matches(r"(?i)\bkey.{0,200}end\b") || text.matches(r"\bb[0-9]{3}") || text.contains("zz")`
  const trial = trialOf(expression)
  const start = 'a b key word '.repeat(18_000)
  const text = `${start}b123 key ${'w'.repeat(195)} end zz b456`
  let result = await trial.explain(answer(text))
  let longestMs = Infinity
  // A garbage collection may fall into one round, but not into three.
  for (let round = 0; round < 3 && longestMs > 50; round++) {
    longestMs = await longestTurnMs(async () => (result = await trial.explain(answer(text))))
  }
  expect(longestMs).toBeLessThan(50)
  const found = result.matches.map(({ start: from, end }) => text.slice(from, end))
  expect(found).toEqual(['b123', `key ${'w'.repeat(195)} end`, 'zz', 'b456'])
  expect(result.cut).toBe(start.length)
})

test('a rule that reads scores is tried on a request as a whole', async () => {
  const trial = trialOf('score("hate") >= 0.9 ? 8000 : 10')
  const text = `${'a word '.repeat(2000)} hate`
  expect(await trial.explain(request(text))).toMatchObject({ score: 8000, matched: true })
  expect(await trial.judge(request('kind words'))).toMatchObject({ score: 10 })
  expect(trialOf('score("hate") > 0.5').holdback).toBe(288)
  expect(trial.holdback).toBe('full')
})

test('a score that is missing is no verdict', async () => {
  const content = {
    rule: 'cel: score("hate") < 0.5',
    direction: 'both',
    mode: 'enforcing',
  } as const
  const rule = compileEvaluable(content.rule, engine)
  if ('problem' in rule) throw new Error(rule.problem)
  const rest = {
    policyId: 'pol_1',
    version: 0,
    scope: 'organization',
    match_threshold_basis_points: null,
  } as const
  const nothing = {
    engine,
    judgeText,
    gridOf: () => judgeGrid,
    scoreText: async () => new Map<string, number>(),
  }
  const tried = { ...content, ...rest, project_ids: [] }
  const trial = finish(createTrial(tried, rule, nothing, someAsker))
  await expect(trial.judge(request('words'))).rejects.toMatchObject({
    code: 'policy_evaluation_unavailable',
  })
})

const plain = (gate: string | null, changes: Partial<PolicyContent> = {}) =>
  trialOf('true', {
    rule: gate === null ? 'Be kind.' : `when: ${gate}\nBe kind.`,
    ...changes,
  })
const longStart = 'a word '.repeat(20)

test.each([
  [null, 'some rude words', { score: 9000, matched: true, cut: 0, judge_calls: 1 }],
  [null, 'some kind words', { score: 100, matched: false, cut: null, judge_calls: 1 }],
  // The second window begins there.
  [null, `${longStart}rude`, { score: 9000, matched: true, cut: 97, judge_calls: 2 }],
  ['text.contains("boss")', 'some rude words', { score: 0, matched: false, judge_calls: 0 }],
  ['text.contains("boss")', `${longStart}rude boss`, { matched: true, cut: 145, judge_calls: 2 }],
  ['text.contains("boss")', `boss ${longStart}rude`, { matched: true, cut: 97, judge_calls: 2 }],
  // Only the whole answer decides.
  ['!text.contains("boss")', `${longStart}rude`, { matched: true, cut: 0, judge_calls: 1 }],
  ['score("hate") > 0.5', 'rude words of hate', { matched: true, cut: 0, judge_calls: 1 }],
  ['score("hate") > 0.5', 'rude words', { matched: false, judge_calls: 0 }],
] as const)('plain language after the gate %j: %j', async (gate, text, expected) => {
  expect(await plain(gate).explain(answer(text))).toMatchObject(expected)
})

test('a request is judged as a whole, and an answer up to its first match', async () => {
  const long = `${'rude '.repeat(400)}`
  expect(await plain(null).explain(request(long))).toMatchObject({ judge_calls: 1, cut: null })
  expect(await plain(null).explain(answer(long))).toMatchObject({ judge_calls: 4, cut: 0 })
  expect((await plain(null).explain(answer('kind '.repeat(400)))).judge_calls).toBe(9)
})

test('the threshold decides about what the judge says', async () => {
  const judge = (threshold: number) =>
    plain(null, { match_threshold_basis_points: threshold }).judge(request('rude'))
  expect([(await judge(9000)).isMatch, (await judge(9001)).isMatch]).toEqual([true, false])
})

test('a judge that does not answer has given no verdict', async () => {
  const judging = plain(null).judge(request('silence'))
  await expect(judging).rejects.toMatchObject({ code: 'policy_evaluation_unavailable' })
})
