import { expect, test } from 'vitest'

import { guardStreamed } from '#inference/enforcement/testing/guard-written.ts'
import { dataFrame } from '#inference/enforcement/testing/written-frame.ts'
import { createChoices } from '#policies/guard/testing/random-case.ts'
import { answerFacts, ruleSetOf } from '#policies/guard/testing/rule-set-of.ts'
import { oneScorer, scoreEach } from '#policies/guard/testing/score-each.ts'

// Models may write several tool calls at the same time, each a few characters at a time.

const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', model: 'their-model' }
const chunk = (delta: object, finish_reason: string | null = null) =>
  dataFrame({ ...head, choices: [{ index: 0, delta, finish_reason }] })
const sayIn = (index: number, json: string) =>
  chunk({ tool_calls: [{ index, function: { arguments: json } }] })

/** Calls that grow in turns; `speeds` are the characters that each of them gets in a turn. */
function writeCalls(speeds: readonly number[], turns: number) {
  const words = 'some words that say little '.repeat(200)
  const start = speeds.map((_, index) =>
    chunk({
      tool_calls: [{ index, id: `call_${index}`, function: { name: 'save', arguments: '{"a":"' } }],
    }),
  )
  const grow = Array.from({ length: turns }, (_, turn) =>
    speeds.map((speed, index) => sayIn(index, words.slice(turn * speed, (turn + 1) * speed))),
  ).flat()
  const end = [...speeds.map((_, index) => sayIn(index, '"}')), chunk({}, 'tool_calls')]
  return [...start, ...grow, ...end, { bytes: 'data: [DONE]\n\n', says: [] }]
}

const set = ruleSetOf(['text.matches("(?i)card [0-9]{4,200}")'])
const rules = set.openAnswer(answerFacts)
const categories = ['self-harm'] as const

test.each([
  ['8 calls, all as fast', Array.from({ length: 8 }, () => 5), 300],
  ['8 calls, one of them slow', [1, ...Array.from({ length: 7 }, () => 20)], 200],
  ['40 calls, all as fast', Array.from({ length: 40 }, () => 3), 120],
])('%s, leave as they came', { timeout: 90_000 }, async (_, speeds, turns) => {
  const frames = writeCalls(speeds, turns)
  const judges = {
    set,
    rules,
    categories,
    scored: { scorers: oneScorer(scoreEach(async () => [])), highest: () => new Map() },
  }
  const written = { frames, body: {}, bodySays: [] }
  const { end, bytes } = await guardStreamed('chat_completions', written, judges, createChoices(1))
  expect(end).toBeNull()
  expect(bytes).toBe(frames.map((frame) => frame.bytes).join(''))
})
