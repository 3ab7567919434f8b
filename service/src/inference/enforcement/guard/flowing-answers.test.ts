import { expect, test } from 'vitest'

import type { Frame, Json } from '#formats/answer.ts'
import type { CallerFormatName } from '#formats/format-name.ts'
import { upstreamFormats } from '#formats/formats.ts'
import { finish } from '#platform/steps/steps.ts'
import { AnswerGuard } from '#policies/guard/answer-guard.ts'
import { answerFacts, ruleSetOf } from '#policies/guard/testing/rule-set-of.ts'

import { HeldFrames } from './held-frames.ts'

// Texts are also read joined and decoded. No such reading may hold back what follows it until the answer is over.

/** How many of these frames have left before the answer is over, and how the guard has ended it. */
function pass(format: CallerFormatName, frames: readonly Json[], before = '') {
  const guard = new AnswerGuard(ruleSetOf(['text.contains("secret")']).openAnswer(answerFacts), {
    now: () => 0,
    evaluateAtEnd: async () => [],
  })
  const held = new HeldFrames(guard, () => Promise.resolve())
  const reader = upstreamFormats.get(format)!.createTextReader(before)
  let left = 0
  for (const json of frames) {
    const source = { event: '', data: JSON.stringify(json), json, bytes: Buffer.alloc(0) }
    const frame = { events: [], source } as unknown as Frame
    const steps = held.add({ format, frames: [frame] }, reader, () => undefined)
    if (steps) finish(steps)
    left += held.take().length
  }
  return { waiting: frames.length - left, ended: guard.ended }
}

const chunk = (delta: Json): Json => ({ choices: [{ index: 0, delta, finish_reason: null }] })
const call = (index: number, json: string) =>
  chunk({ tool_calls: [{ index, function: { arguments: json } }] })
const many = (make: (number: number) => Json) => Array.from({ length: 2000 }, (_, at) => make(at))
const words = 'some words that say nothing and are rather long, as those of programs are. '

const answers: [string, CallerFormatName, Json[], string?][] = [
  [
    'a call after another',
    'chat_completions',
    [call(0, '{"path":"a.ts"}'), call(1, '{"text":"'), ...many(() => call(1, words))],
  ],
  [
    'content after a call',
    'chat_completions',
    [call(0, '{"path":"a.ts"}'), ...many(() => chunk({ content: words }))],
  ],
  [
    'a call after what the caller has begun',
    'chat_completions',
    [chunk({ content: 'Well: ' }), call(0, '{"text":"'), ...many(() => call(0, words))],
    'I say. ',
  ],
  [
    'reasoning and content in turns',
    'chat_completions',
    many((at) => chunk(at % 2 === 0 ? { content: words } : { reasoning_content: words })),
    'I say. ',
  ],
  [
    'text after the arguments of a call that came as a whole',
    'responses',
    [
      {
        type: 'response.output_item.done',
        output_index: 0,
        item: { type: 'function_call', id: 'fc', name: 'f', arguments: '{"path":"a.ts"}' },
      },
      ...many(() => ({
        type: 'response.output_text.delta',
        output_index: 1,
        content_index: 0,
        delta: words,
      })),
    ],
  ],
]

test.each(answers)('%s flows', (_, format, frames, before) => {
  const { waiting, ended } = pass(format, frames, before)
  expect(ended).toBeNull()
  expect(waiting).toBeLessThan(20)
})

test('a text that is repeated with other white space around it does no harm', () => {
  const text = (output_index: number, members: Json) => ({
    output_index,
    content_index: 0,
    ...members,
  })
  const delta = (index: number, words: string) =>
    text(index, { type: 'response.output_text.delta', delta: words })
  const frames = [
    delta(0, 'first block'),
    delta(1, 'hello'),
    text(1, { type: 'response.output_text.done', text: ' hello ' }),
    delta(1, 'abc'),
  ]
  expect(pass('responses', frames)).toBeDefined()
})
