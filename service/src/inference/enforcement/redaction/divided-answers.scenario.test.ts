import fc from 'fast-check'
import { expect, test } from 'vitest'

import type { AnswerEvent } from '#formats/answer.ts'
import { callerFormats } from '#formats/formats.ts'
import { cutText } from '#formats/testing/cut-text.ts'
import { meaningOf } from '#formats/testing/meaning-of.ts'
import { plainAnswerOf } from '#formats/testing/plain-answer-of.ts'
import { toEvents } from '#formats/testing/said-events.ts'
import { finish } from '#platform/steps/steps.ts'
import { createPlaceholders } from '#redaction/placeholders.ts'
import { harmless, planted } from '#redaction/testing/corpus.ts'

import { AnswerRedactor } from './redact-answer.ts'

// Answers whose text is divided over blocks, as citations divide sentences.

const seed = Number(process.env['REDACTION_SEED'] ?? Date.now() % 2 ** 31)

type Said = { type: string; pieces: string[] }

const openRedactor = () =>
  new AnswerRedactor({ placeholders: createPlaceholders(), withheld: new Map(), passed: new Map() })

function redact(events: readonly AnswerEvent[]): AnswerEvent[] {
  const redactor = openRedactor()
  return events.flatMap((event) => finish(redactor.redact([event])))
}

/** The texts of the blocks, by their index. */
function textsOf(events: readonly AnswerEvent[]): string[] {
  const texts: string[] = []
  for (const event of events) {
    if (event.type === 'block_started') texts[event.index] = ''
    if (event.type === 'block_delta') texts[event.index] = (texts[event.index] ?? '') + event.text
  }
  return texts
}

const say = (...texts: string[]): Said[] => texts.map((text) => ({ type: 'text', pieces: [text] }))
const redacted = (...texts: string[]) => textsOf(redact(toEvents(say(...texts))))

test('a value is replaced in the block where it begins', () => {
  expect(redacted('write to john.doe@exam', 'ple.com')).toEqual(['write to [EMAIL_1]', ''])
  expect(redacted('card 4111 1111 ', '1111 1111', '.')).toEqual(['card [CARD_1]', '', '.'])
  expect(redacted('4111 1111', '1111 1111')).toEqual(['[CARD_1]', ''])
  // A value on its own is one, whatever follows in the next block.
  expect(redacted('ssn 123-45-6789', '5 apples')).toEqual(['ssn [SSN_1]', '5 apples'])
})

test.each(['reasoning', 'refusal'])('a value in two blocks of %s is one', (type) => {
  const said = ['For john@exam', 'ple.com.'].map((text) => ({ type, pieces: [text] }))
  expect(textsOf(redact(toEvents(said)))).toEqual(['For [EMAIL_1]', '.'])
})

test('it goes on behind calls and reasoning', () => {
  const said = [
    ...say('To john@exam'),
    { type: 'tool_call', pieces: ['{"a":', '1}'] },
    { type: 'reasoning', pieces: ['Hm.'] },
    ...say('ple.com now'),
  ]
  expect(textsOf(redact(toEvents(said)))).toEqual(['To [EMAIL_1]', '{"a":1}', 'Hm.', ' now'])
})

test('a block ends at once where its text is final, and calls do not wait for it', () => {
  const redactor = openRedactor()
  const left = toEvents([
    ...say('I look. '),
    ...say('Then'),
    { type: 'tool_call', pieces: ['{}'] },
  ]).map((event) =>
    finish(redactor.redact([event])).map((each) =>
      'index' in each ? `${each.type} ${each.index}` : each.type,
    ),
  )
  expect(left).toEqual([
    ['started'],
    ['block_started 0'],
    ['block_delta 0'],
    ['block_ended 0'],
    ['block_started 1'],
    [],
    [],
    ['block_started 2'],
    ['block_delta 2'],
    ['block_ended 2'],
    ['block_delta 1', 'block_ended 1', 'finished'],
  ])
})

const words = [...planted.map(([text]) => text), ...harmless]
const someText = fc
  .array(fc.constantFrom(...words), { minLength: 1, maxLength: 4 })
  .map((texts) => texts.join(' , '))
const someLengths = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 })

/** Blocks in which a text is said, some of them with a call before. */
const divide = (text: string, lengths: readonly number[], deltas: readonly number[]): Said[] =>
  cutText(text, lengths).flatMap((part, number) => [
    ...(number % 3 === 2 ? [{ type: 'tool_call', pieces: ['{"a":1}'] }] : []),
    { type: 'text', pieces: cutText(part, deltas) },
  ])

/** The events of every other block before those of the block before it, but for their starts. */
function overlap(events: readonly AnswerEvent[]): AnswerEvent[] {
  const inBlock = events.filter((event) => 'index' in event && event.type !== 'block_started')
  const [first, last] = [events[0]!, events.at(-1)!]
  const started = events.filter(({ type }) => type === 'block_started')
  return [first, ...started, ...inBlock.toReversed().toSorted(byHalf), last]
}

/** Of each block the deltas stay in order. */
const byHalf = (one: AnswerEvent, other: AnswerEvent) =>
  'index' in one && 'index' in other ? (one.index ^ 1) - (other.index ^ 1) : 0

test(
  'the result does not depend on the deltas, and no caller gets a value',
  { timeout: 60_000 },
  () => {
    let changed = 0
    fc.assert(
      fc.property(someText, someLengths, someLengths, (text, lengths, deltas) => {
        const whole = textsOf(redact(toEvents(divide(text, lengths, [1000]))))
        const came = toEvents(divide(text, lengths, deltas))
        const events = redact(came)
        expect(textsOf(events)).toEqual(whole)
        expect(meaningOf(events).calls).toEqual(meaningOf(came).calls)
        const { text: said } = meaningOf(events)
        for (const [value, kind] of planted) {
          if (!text.includes(value)) continue
          changed++
          // A key whose end is divided takes what follows it along.
          expect(said).toMatch(new RegExp(String.raw`\[(${kind}|SECRET)_\d`))
          for (const format of Object.values(callerFormats)) {
            expect(textIn(plainAnswerOf(format, events))).not.toContain(value)
          }
        }
      }),
      { numRuns: 200, seed },
    )
    console.log(`divided answers: ${changed} values from seed ${seed}`)
    expect(changed).toBeGreaterThan(100)
  },
)

test('blocks that overlap are read in their order', () => {
  const events = toEvents(say('to john@exam', 'ple.com, ', 'card 4111 1111 ', '1111 1111 now'))
  const overlapping = overlap(
    events.map((event) => (event.type === 'block_ended' ? { ...event } : event)),
  ).filter(({ type }) => type !== 'block_ended')
  const ended = events.filter(({ type }) => type === 'block_ended').toReversed()
  const left = redact([...overlapping.slice(0, -1), ...ended, overlapping.at(-1)!])
  expect(meaningOf(left).text).toBe('to [EMAIL_1], card [CARD_1] now')
  expect(textsOf(left)).toEqual(['to [EMAIL_1]', ', ', 'card [CARD_1]', ' now'])
})

const textIn = (answer: unknown): string => {
  if (typeof answer === 'string') return answer
  if (typeof answer !== 'object' || answer === null) return ''
  return Object.values(answer).map(textIn).join('')
}
