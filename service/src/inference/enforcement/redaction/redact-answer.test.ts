import fc from 'fast-check'
import { expect, test } from 'vitest'

import type { AnswerEvent } from '#formats/answer.ts'
import { callerFormats } from '#formats/formats.ts'
import { cutText } from '#formats/testing/cut-text.ts'
import { plainAnswerOf } from '#formats/testing/plain-answer-of.ts'
import { toEvents } from '#formats/testing/said-events.ts'
import { finish } from '#platform/steps/steps.ts'
import { createPlaceholders } from '#redaction/placeholders.ts'
import { harmless, planted } from '#redaction/testing/corpus.ts'
import { redactText } from '#redaction/text-redactor.ts'

import { AnswerRedactor } from './redact-answer.ts'

const seal = { origin: 'messages', kind: 'signature', data: 'c2ln', id: null } as const

/** The texts of the blocks, by their index. */
function textsOf(events: readonly AnswerEvent[]): string[] {
  const texts: string[] = []
  for (const event of events) {
    if (event.type === 'block_started') texts[event.index] = ''
    if (event.type === 'block_delta') texts[event.index] = (texts[event.index] ?? '') + event.text
  }
  return texts
}

const openRedactor = (placeholders = createPlaceholders()) => {
  const redacting = { placeholders, withheld: new Map(), passed: new Map() }
  const redactor = new AnswerRedactor(redacting)
  return {
    ...redacting,
    redact: (events: readonly AnswerEvent[]) => finish(redactor.redact(events)),
  }
}

/** One event at a time. */
function redactAll(events: readonly AnswerEvent[], placeholders = createPlaceholders()) {
  const { redact } = openRedactor(placeholders)
  return events.flatMap((event) => redact([event]))
}

const seed = Number(process.env['REDACTION_SEED'] ?? Date.now() % 2 ** 31)
const someText = fc
  .array(fc.constantFrom(...planted.map(([text]) => text), ...harmless), { maxLength: 6 })
  .map((texts) => texts.join(' '))
const someLengths = fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1 })

test('text in any pieces becomes what the whole text becomes, in every format', () => {
  let redacted = 0
  fc.assert(
    fc.property(someText, someText, someLengths, (asked, text, lengths) => {
      const whole = createPlaceholders()
      const [first, second] = [asked, text].map((one) => finish(redactText(one, whole)))
      const placeholders = createPlaceholders()
      expect(finish(redactText(asked, placeholders))).toBe(first)
      const said = [{ type: 'text', pieces: cutText(text, lengths) }]
      const events = redactAll(toEvents(said), placeholders)
      expect(textsOf(events)).toEqual([second])
      expect([...placeholders.counts]).toEqual([...whole.counts])
      if (second !== text) redacted++
      for (const format of Object.values(callerFormats)) {
        expect(JSON.stringify(plainAnswerOf(format, events))).toContain(
          JSON.stringify(second).slice(1, -1),
        )
      }
    }),
    { numRuns: 200, seed },
  )
  console.log(`redacted answers: ${redacted} of 200 from seed ${seed}`)
  expect(redacted).toBeGreaterThan(50)
})

test('refusals are redacted, and arguments pass and are counted', () => {
  const said = [
    { type: 'refusal', pieces: ['Not for ja', 'ne@example.com.'] },
    { type: 'tool_call', pieces: [String.raw`{"to":"jane\u0040exa`, 'mple.com", "cc": "x"}'] },
  ]
  const { redact, placeholders, passed } = openRedactor()
  expect(textsOf(toEvents(said).flatMap((event) => redact([event])))).toEqual([
    'Not for [EMAIL_1].',
    String.raw`{"to":"jane\u0040example.com", "cc": "x"}`,
  ])
  expect([[...placeholders.counts], [...passed]]).toEqual([[['EMAIL', 1]], [['EMAIL', 1]]])
})

const reasoning = (text: string, isSealed: boolean): AnswerEvent[] => [
  { type: 'block_started', index: 0, block: { type: 'reasoning' } },
  ...Array.from(text, (character): AnswerEvent => ({
    type: 'block_delta',
    index: 0,
    text: character,
  })),
  ...(isSealed ? [{ type: 'block_sealed', index: 0, opaque: seal } as const] : []),
  { type: 'block_ended', index: 0 },
]

test('reasoning that is sealed leaves as it is or not at all, and its seal always does', () => {
  for (const [text, shown] of [
    ['About 42.', 'About 42.'],
    ['About jane@example.com.', ''],
  ] as const) {
    const events = redactAll(reasoning(text, true))
    expect(textsOf(events)).toEqual([shown])
    expect(events.slice(-2)).toEqual([
      { type: 'block_sealed', index: 0, opaque: seal },
      { type: 'block_ended', index: 0 },
    ])
  }
})

test('reasoning that is not sealed is redacted, and withheld when it is too long to be held', () => {
  const next = { type: 'block_started', index: 1, block: { type: 'text' } } as const
  const events = redactAll([...reasoning('About jane@example.com.', false), next])
  expect(textsOf(events)).toEqual(['About [EMAIL_1].', ''])
  // A text is not shown before the reasoning has ended.
  expect(events.slice(-2)).toEqual([{ type: 'block_ended', index: 0 }, next])
  const long = reasoning('', false)
  long.splice(1, 0, { type: 'block_delta', index: 0, text: 'x '.repeat(1024 * 1024) })
  expect(textsOf(redactAll([...long, next]))).toEqual(['', ''])
})

test('text leaves as soon as no entity can begin in it any more', () => {
  const { redact } = openRedactor()
  redact([{ type: 'block_started', index: 0, block: { type: 'text' } }])
  const say = (text: string) => textsOfDeltas(redact([{ type: 'block_delta', index: 0, text }]))
  expect(['One fine ', 'da', 'y, jane@exam', 'ple.com ', 'and '].map(say)).toEqual([
    'One fine ',
    '',
    'day, ',
    '[EMAIL_1] ',
    'and ',
  ])
})

const textsOfDeltas = (events: readonly AnswerEvent[]) =>
  events.map((event) => (event.type === 'block_delta' ? event.text : '')).join('')
