import { setTimeout } from 'node:timers/promises'

import { describe, expect, onTestFinished, test, vi } from 'vitest'

import type { Piece } from '#formats/answer.ts'
import { upstreamFormats } from '#formats/formats.ts'
import { plainSource } from '#formats/testing/meaning-of.ts'
import { createFindings } from '#inference/enforcement/findings.ts'
import { addCategories } from '#inference/enforcement/moderation/moderation.ts'
import {
  type JudgedAnswer,
  unjudgedAnswer,
} from '#inference/enforcement/plain-language/judge-answer.ts'
import { endingsOf } from '#inference/enforcement/testing/endings-of.ts'
import { createLocalScorer } from '#moderation/local/local-scorer.ts'
import { Cancellation } from '#platform/calls/cancellation.ts'
import { type Clock, steadyClock } from '#platform/clock.ts'
import { answerFacts, ruleSetOf } from '#policies/guard/testing/rule-set-of.ts'
import { oneScorer, scoreEach } from '#policies/guard/testing/score-each.ts'
import type { ScoreWindows } from '#policies/guard/window-queue.ts'

import { guardAnswer } from './guard-answer.ts'

// A scorer is slower than a text that is there already: the text waits for the scorer.

const categories = ['self-harm', 'sexual/minors'] as const
const mark = 'wicked thing'
const sentence = 'Some words of an answer that say nothing. '
const textOf = (length: number) => sentence.repeat(length / sentence.length)

/** A text, or the arguments of a tool call. */
function readPlain(said: string | object): Piece {
  const head = { id: 'msg_1', type: 'message', role: 'assistant', model: 'their-model' }
  const usage = { input_tokens: 10, output_tokens: 5 }
  const block =
    typeof said === 'string'
      ? { type: 'text', text: said }
      : { type: 'tool_use', id: 'toolu_1', name: 'save', input: said }
  const body = { ...head, content: [block], stop_reason: 'end_turn', usage }
  const frame = upstreamFormats.get('messages')?.readPlain?.(plainSource(body))
  if (!frame) throw new Error('The format has no plain answers.')
  return { format: 'messages', frames: [frame], isPlain: true }
}

type Judged = {
  rules?: string[]
  cancellation?: Cancellation
  now?: Clock
  judged?: JudgedAnswer
}

/** How a plain answer ends: `left`, or the code of its error. */
async function judge(
  said: string | object,
  scoreWindows: ScoreWindows,
  given: Judged = {},
): Promise<string> {
  const { rules = [], cancellation = new Cancellation() } = given
  const { now = steadyClock, judged = unjudgedAnswer } = given
  const set = ruleSetOf(rules)
  const options = {
    formats: upstreamFormats,
    steadyNow: now,
    cancellation,
    logProblem: () => {},
    facts: answerFacts,
    scored: { scorers: oneScorer(scoreWindows), highest: () => new Map() },
    judged,
    set,
    rules: addCategories(endingsOf(set), categories),
    findings: createFindings(),
    owner: 'org_1',
  }
  const pieces = (async function* () {
    yield readPlain(said)
  })()
  try {
    let left = 0
    for await (const { frames } of guardAnswer(pieces, options)) left += frames.length
    return left === 1 ? 'left' : `${left} frames`
  } catch (error) {
    const { code, message } = error as { code?: string; message: string }
    return code ?? message
  }
}

const local = createLocalScorer()
const hitsOf = (text: string) => (text.includes(mark) ? [1] : [])
const scorers: Record<string, ScoreWindows> = {
  'answers at once': scoreEach(async ({ text }) => hitsOf(text)),
  'takes 100 ms': scoreEach(async ({ text }) => setTimeout(100, hitsOf(text))),
  'is the local one': scoreEach(async ({ text }, signal) => {
    const [scores] = await local.score([{ role: 'assistant', text }], {
      signal,
      organizationId: 'org_1',
    })
    return categories.flatMap((each, atom) => ((scores?.[each] ?? 0) >= 6000 ? [atom] : []))
  }),
}
const ruleSets = { 'no rule': [], 'a rule for the whole answer': ['!text.contains("answer")'] }
const patience = { timeout: 60_000 }

describe.each(Object.entries(scorers))('a scorer that %s', (name, scoreWindows) => {
  test.each(Object.entries(ruleSets))('judges 100 KB, with %s', patience, async (_, rules) => {
    expect(await judge(textOf(100_000), scoreWindows, { rules })).toBe('left')
  })

  test('judges a tool call with many short texts', patience, async () => {
    const words = Array.from({ length: 200 }, (_, number) => `word ${number}`)
    expect(await judge({ words }, scoreWindows)).toBe('left')
  })

  test('judges 1 MB', patience, async () => {
    expect(await judge(textOf(1_000_000), scoreWindows)).toBe('left')
  })

  test.skipIf(name === 'is the local one')('finds what stands at the end', patience, async () => {
    expect(await judge(textOf(100_000) + mark, scoreWindows)).toBe('moderation_blocked')
  })
})

test('an answer may take long while verdicts keep coming', async () => {
  let nowMs = 0
  const slow = scoreEach(async () => {
    nowMs += 500
    await setTimeout(1)
    return []
  })
  const now = () => new Date(nowMs)
  expect(await judge(textOf(100_000), slow, { now })).toBe('left')
  expect(nowMs).toBeGreaterThan(90_000)
})

test('an answer does not stand still for more than thirty seconds', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const judged = { ...unjudgedAnswer, judgeWhole: () => new Promise<never>(() => {}) }
  const rules = ['!text.contains("answer")']
  let end: string | null = null
  const judging = judge(
    textOf(1000),
    scoreEach(async () => []),
    { rules, judged },
  ).then((code) => {
    end = code
  })
  await setTimeout(200) // of the real clock
  await vi.advanceTimersByTimeAsync(29_999)
  expect(end).toBeNull()
  await vi.advanceTimersByTimeAsync(1)
  await judging
  expect(end).toBe('policy_evaluation_unavailable')
})

test('a scorer that fails ends the wait for it', async () => {
  let asked = 0
  const failing = scoreEach(async () => {
    await setTimeout(10)
    if (++asked > 20) throw new Error('The scorer is away.')
    return []
  })
  expect(await judge(textOf(100_000), failing)).toBe('policy_evaluation_unavailable')
})

test('a call that is given up ends the wait for a scorer', async () => {
  const cancellation = new Cancellation()
  const ended = judge(textOf(100_000), () => new Promise(() => {}), { cancellation })
  await setTimeout(50)
  cancellation.cancel(new Error('given up'))
  expect(await ended).toBe('given up')
})
