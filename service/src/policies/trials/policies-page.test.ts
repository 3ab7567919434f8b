import { readFileSync } from 'node:fs'

import type { PolicyContent } from '@gatehouse/contract/policy'
import { expect, test } from 'vitest'

import { finish } from '#platform/steps/steps.ts'
import { someAsker } from '#policies/guard/testing/rule-set-of.ts'
import { compileRule } from '#policies/rules/rule-program.ts'
import { loadPatternEngine } from '#text/pattern-engine.ts'
import { remoteGrid } from '#text/windows/window-grid.ts'

import { createTrial } from './trial.ts'

// docs/policies.md promises that its examples are run: here they are.

const engine = loadPatternEngine()
const page = readFileSync(new URL('../../../../docs/policies.md', import.meta.url), 'utf8')

/** Each rule in a block, with the rows of the table below it. */
const examples = [
  ...page.matchAll(/```cel\n(.+)\n```\n\n\| Text .*\n\| ---.*\n((?:\|.*\n)+)/g),
].map(([, rule = '', rows = '']) => ({ rule, rows: cellsOf(rows) }))
/** Rules in plain language, with what the judge says of each text. */
const judged = [
  ...page.matchAll(
    /```text\n((?:.+\n)+)```\n\n\| Text \| The judge's .*\n\| ---.*\n((?:\|.*\n)+)/g,
  ),
].map(([, rule = '', rows = '']) => ({ rule, rows: cellsOf(rows) }))
const holdBacks = [...page.matchAll(/^\| `(cel: .+)` \| `(\S+)` \|$/gm)].map(
  ([, rule = '', holdback = '']) => ({ rule, holdback }),
)

function cellsOf(rows: string): [text: string, ...others: string[]][] {
  return rows
    .trimEnd()
    .split('\n')
    .map((row) => row.split('|').map((cell) => cell.trim()))
    .map(([, text = '', ...others]) => [text, ...others])
}

const scoreText = async () => new Map<string, number>()

/** The judge says what the page says. */
function tryRule(rule: string, score = 0) {
  const judgeText = async () => ({ score, calls: 1 })
  const compiled = compileRule(rule, engine)
  if (typeof compiled === 'string') throw new Error(`The rule ${rule} ${compiled}.`)
  const content: PolicyContent = {
    rule,
    direction: 'both',
    mode: 'enforcing',
    scope: 'organization',
    project_ids: [],
    match_threshold_basis_points: null,
  }
  const tried = { ...content, policyId: 'pol_1', version: 0 }
  return finish(
    createTrial(
      tried,
      compiled,
      { engine, scoreText, gridOf: () => remoteGrid(), judgeText },
      someAsker,
    ),
  )
}

test('the page has the examples that this test looks for', () => {
  expect(examples.length).toBe(page.split('```cel').length - 1)
  expect(judged.length).toBe(page.split('```text').length - 1)
  expect([examples.length, judged.length, holdBacks.length]).toEqual([7, 2, 8])
})

test.each(examples.flatMap(({ rule, rows }) => rows.map(([text, is]) => ({ rule, text, is }))))(
  '$rule: "$text" matches: $is',
  async ({ rule, text, is }) => {
    const { judge } = tryRule(rule)
    for (const direction of ['request', 'response'] as const) {
      expect((await judge({ text, direction })).isMatch).toBe(is === 'yes')
    }
  },
)

test.each(
  judged.flatMap(({ rule, rows }) =>
    rows.map(([text, score = '', is]) => ({ rule, text, score, is })),
  ),
)('$rule: "$text", of which the judge says $score, matches: $is', async (example) => {
  const { rule, text, score, is } = example
  const isAsked = score !== 'not asked'
  const { explain } = tryRule(rule, isAsked ? Number(score) : 10_000)
  for (const direction of ['request', 'response'] as const) {
    expect(await explain({ text, direction })).toMatchObject({
      matched: is === 'yes',
      score: isAsked ? Number(score) : 0,
      judge_calls: isAsked ? 1 : 0,
    })
  }
})

test.each(holdBacks)('$rule holds back $holdback', ({ rule, holdback }) => {
  expect(String(tryRule(rule).holdback)).toBe(holdback)
})
