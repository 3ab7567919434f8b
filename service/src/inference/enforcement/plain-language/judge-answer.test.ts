import { expect, test } from 'vitest'

import { readRequestTexts } from '#formats/texts/request-texts.ts'
import { emptyTurn } from '#formats/turn.ts'
import { endingsOf } from '#inference/enforcement/testing/endings-of.ts'
import { type Judge, JudgeFailure } from '#moderation/judge/judge.ts'
import { finish } from '#platform/steps/steps.ts'
import { patternEngine } from '#policies/guard/testing/rule-set-of.ts'
import { ScorerUnavailable, type Window } from '#policies/guard/window-queue.ts'
import { compileRule } from '#policies/rules/rule-program.ts'
import { RuleSet } from '#policies/rules/rule-set.ts'
import type { SetRule } from '#policies/rules/set-rule.ts'

import { judgeAnswer } from './judge-answer.ts'

const { signal } = new AbortController()

function ruleOf(text: string, policyId: string): SetRule {
  const rule = compileRule(text, patternEngine)
  if (typeof rule === 'string') throw new Error(rule)
  return { policyId, policyName: policyId, version: 1, threshold: 5000, mode: 'enforcing', rule }
}

/** A text is as rude as it says, and the judge fails at one that says nothing. */
function open() {
  const set = new RuleSet(
    [ruleOf('cel: text.contains("x")', 'exact'), ruleOf('Nobody may be rude.', 'plain')],
    patternEngine,
  )
  const most = { now: 0, ever: 0 }
  const judge: Judge = {
    id: 'judge',
    calibrationVersion: 'none',
    isPausing: () => false,
    async judge(_, { text }) {
      most.ever = Math.max(most.ever, ++most.now)
      await new Promise(setImmediate)
      most.now--
      const score = Number.parseInt(text)
      if (Number.isNaN(score)) throw new JudgeFailure('late', 'It is late.')
      return new Map([['plain', score]])
    },
  }
  const callJudge = {
    judge,
    onError: 'refuse' as const,
    organizationId: 'org_1',
    onDegraded: () => {},
  }
  const request = finish(readRequestTexts(emptyTurn))
  const rules = endingsOf(set)
  return { most, ...judgeAnswer({ callJudge, set, rules, request, hide: null }) }
}

const windowsOf = (...texts: string[]): Window[] =>
  texts.map((text) => ({ channel: 'text', text, start: 0, end: text.length, isLast: false }))

test('each window is told what it hits, and the highest score is kept', async () => {
  const { scorer, scores } = open()
  const windows = windowsOf('10', '7000', '20', '5000', '4999', '6000')
  expect(await scorer?.scoreWindows(windows, signal)).toEqual([[], [0], [], [0], [], [0]])
  expect(Array.from(scores, ([{ policyId }, score]) => [policyId, score])).toEqual([
    ['plain', 7000],
  ])
})

test('windows are judged side by side, and few of them together', async () => {
  const { scorer, most } = open()
  expect(scorer?.windowsTogether).toBe(4)
  await scorer?.scoreWindows(windowsOf('1', '1', '1', '1'), signal)
  expect(most.ever).toBe(4)
})

test('a window that the judge fails at does not hide what it says of others', async () => {
  const { scorer } = open()
  expect(await scorer?.scoreWindows(windowsOf('7000', 'nothing', '1'), signal)).toEqual([
    [0],
    { atoms: [], error: new ScorerUnavailable('the judge has not answered') },
    [],
  ])
})
