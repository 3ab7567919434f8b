import { describe, expect, test } from 'vitest'

import type { Piece } from '#formats/answer.ts'
import { upstreamFormats } from '#formats/formats.ts'
import { plainSource } from '#formats/testing/meaning-of.ts'
import type { Ending } from '#inference/enforcement/check.ts'
import { createFindings } from '#inference/enforcement/findings.ts'
import { addCategories } from '#inference/enforcement/moderation/moderation.ts'
import { unjudgedAnswer } from '#inference/enforcement/plain-language/judge-answer.ts'
import { endingsOf } from '#inference/enforcement/testing/endings-of.ts'
import { createLocalScorer } from '#moderation/local/local-scorer.ts'
import { Cancellation } from '#platform/calls/cancellation.ts'
import { longestTurnMs } from '#policies/guard/testing/longest-turn.ts'
import { answerFacts, ruleSetOf } from '#policies/guard/testing/rule-set-of.ts'
import { oneScorer } from '#policies/guard/testing/score-each.ts'
import type { ScoreWindows } from '#policies/guard/window-queue.ts'
import type { AnswerRules } from '#policies/rules/answer-rules.ts'

import { guardAnswer } from './guard-answer.ts'

// However long an answer is, judging it lets other calls have their turns.

/** The most that is held where a rule needs the whole answer. */
const length = 1024 * 1024
const texts = {
  'one letter': 'a'.repeat(length),
  é1a: 'é1a'.repeat(length / 3),
  words: 'the words of a key and of no sec'.repeat(length / 32),
  'surrogate pairs': '💥'.repeat(length / 2),
}
const ruleSets: Record<string, string[]> = {
  'nested repetition': ['text.matches("(a{1,10}){1,10}b")'],
  'the whole answer': ['!text.matches("(a{1,10}){1,10}b") && text.contains("aaaaab")'],
  'the whole answer and a size': [
    '!text.contains("a") && text.size() < 5',
    'text.size() > 5000000',
  ],
  'letters and digits': [
    String.raw`text.matches(r"\p{L}{1,60}\p{N}{1,60}x") && !text.contains("b")`,
    String.raw`text.matches(r"key.{0,200}secret")`,
  ],
}

const categories = ['self-harm', 'sexual/minors'] as const
const local = createLocalScorer()
const scoreWindows: ScoreWindows = async (windows, signal) => {
  const segments = windows.map(({ text }) => ({ role: 'assistant' as const, text }))
  const scores = await local.score(segments, { signal, organizationId: 'org_1' })
  return scores.map((each) =>
    categories.flatMap((name, atom) => ((each[name] ?? 0) >= 6000 ? [atom] : [])),
  )
}

function readPlain(text: string): Piece {
  const head = { id: 'msg_1', type: 'message', role: 'assistant', model: 'their-model' }
  const usage = { input_tokens: 10, output_tokens: 5 }
  const body = { ...head, content: [{ type: 'text', text }], stop_reason: 'end_turn', usage }
  const frame = upstreamFormats.get('messages')?.readPlain?.(plainSource(body))
  if (!frame) throw new Error('The format has no plain answers.')
  return { format: 'messages', frames: [frame], isPlain: true }
}

describe.each(Object.entries(ruleSets))('%s', (_, expressions) => {
  const set = ruleSetOf(expressions)
  const rules = endingsOf(set)

  const scored = addCategories(rules, categories)

  /** Whether the answer has left. */
  async function judge(piece: Piece, judgedBy: AnswerRules<Ending>): Promise<boolean> {
    const findings = createFindings()
    const options = {
      formats: upstreamFormats,
      steadyNow: () => new Date(0),
      cancellation: new Cancellation(),
      logProblem: () => {},
      facts: answerFacts,
      owner: 'org_1',
      scored: { scorers: oneScorer(scoreWindows), highest: () => new Map() },
      judged: unjudgedAnswer,
      rules: judgedBy,
    }
    const pieces = (async function* () {
      yield piece
    })()
    try {
      let left = 0
      for await (const { frames } of guardAnswer(pieces, { ...options, set, findings })) {
        left += frames.length
      }
      return left === 1
    } catch (error) {
      expect(error).toMatchObject({ code: 'policy_blocked' })
      return false
    }
  }

  test.each(
    Object.entries(texts).flatMap(([name, text]) => [
      { name, text, judgedBy: rules },
      { name: `${name}, scored`, text, judgedBy: scored },
    ]),
  )(
    'a plain answer of 1 MB holds the event loop under 50 ms: $name',
    { timeout: 60_000 },
    async ({ text, judgedBy }) => {
      const piece = readPlain(text)
      const isBlocked = set.evaluate(answerFacts, [text]).some(({ isMatch }) => isMatch)
      let longestMs = Infinity
      // A garbage collection may fall into one round, but not into three.
      for (let round = 0; round < 3 && longestMs > 50; round++) {
        longestMs = await longestTurnMs(async () =>
          expect(await judge(piece, judgedBy)).toBe(!isBlocked),
        )
      }
      expect(longestMs).toBeLessThan(50)
    },
  )
})
