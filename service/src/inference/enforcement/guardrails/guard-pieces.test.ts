import { setImmediate } from 'node:timers/promises'

import fc from 'fast-check'
import { expect, test } from 'vitest'

import { type AnswerEvent, noUsage, type Piece } from '#formats/answer.ts'
import { ApiError } from '#platform/api-error.ts'

import type { DecideWindow, WindowDecision } from './answer-stage.ts'
import type { AnswerWindow } from './answer-windows.ts'
import { guardPieces } from './guard-pieces.ts'

const source = { event: '', data: '', bytes: Buffer.alloc(0), json: {} }
const blocked = new ApiError('policy_blocked', 'A guardrail blocks this.')

const started: AnswerEvent = { type: 'started', id: 'a', model: 'm', usage: noUsage }
const finished: AnswerEvent = {
  type: 'finished',
  reason: 'end',
  stopSequence: null,
  usage: noUsage,
}
const blockOf = (
  index: number,
  text: string,
  block: Extract<AnswerEvent, { type: 'block_started' }>['block'] = { type: 'text' },
): AnswerEvent[] => [
  { type: 'block_started', index, block },
  { type: 'block_delta', index, text },
  { type: 'block_ended', index },
]

async function* piecesOf(events: readonly (AnswerEvent | Error)[]): AsyncGenerator<Piece> {
  for (const event of events) {
    await setImmediate()
    if (event instanceof Error) throw event
    yield { format: 'messages', frames: [{ events: [event], source }] }
  }
}

type Guarded = { events: AnswerEvent[]; error: unknown }

async function guard(
  events: readonly (AnswerEvent | Error)[],
  decide: DecideWindow,
  prefill = '',
): Promise<Guarded> {
  const left: AnswerEvent[] = []
  const guarding = { decide, prefill, interrupt: () => undefined }
  try {
    for await (const { frames, isRebuilt } of guardPieces(piecesOf(events), guarding)) {
      expect(isRebuilt).toBe(true)
      for (const frame of frames) left.push(...frame.events)
    }
    return { events: left, error: null }
  } catch (error) {
    return { events: left, error }
  }
}

const textOf = ({ events }: Guarded, index = 0) =>
  events
    .map((event) => (event.type === 'block_delta' && event.index === index ? event.text : ''))
    .join('')

const refuse = (failure: unknown) => new ApiError('policy_evaluation_unavailable', String(failure))

/** Replaces these wherever they are seen, new or not, as a simple guardrail does. */
const rewriting =
  (pattern: RegExp, replacement = '#', onUnwritable = refuse): DecideWindow =>
  async ({ text }) => {
    const edits = Array.from(text.matchAll(pattern), ({ 0: found, index }) => ({
      start: index,
      end: index + found.length,
      replacement,
    }))
    return [edits.length > 0 ? { kind: 'rewrite', edits, onUnwritable } : { kind: 'pass' }]
  }

const blocking =
  (word: string): DecideWindow =>
  async ({ text }) => [
    text.includes(word) ? { kind: 'end', toError: () => blocked } : { kind: 'pass' },
  ]

const pass: DecideWindow = async () => [{ kind: 'pass' }]
const long = Array.from({ length: 200 }, (_, index) => `word${index}`).join(' ')

test('what is allowed leaves as it came, in the order of its events', async () => {
  const events = [
    started,
    ...blockOf(0, 'Some words.'),
    ...blockOf(1, '{"a":1}', { type: 'tool_call', id: 't', name: 'f' }),
    ...blockOf(2, long),
    finished,
  ]
  const guarded = await guard(events, pass)
  expect(guarded.error).toBeNull()
  expect(guarded.events.filter(({ type }) => type !== 'block_delta')).toEqual(
    events.filter(({ type }) => type !== 'block_delta'),
  )
  expect([0, 1, 2].map((index) => textOf(guarded, index))).toEqual(['Some words.', '{"a":1}', long])
})

test('nothing at or after a window that is blocked leaves, and most of what stands before it does', async () => {
  const guarded = await guard(
    [started, ...blockOf(0, `${long} bomb ${long}`), finished],
    blocking('bomb'),
  )
  expect(guarded.error).toBe(blocked)
  const left = textOf(guarded)
  expect(long.startsWith(left)).toBe(true)
  expect(left.length).toBeGreaterThan(long.length - 250)
  expect(guarded.events).not.toContainEqual(finished)
})

test('what is rewritten leaves in its new form, also where a window ends within it', async () => {
  const number = /\+?\d[\d ]{3,}\d/g
  for (let length = 0; length < 300; length += 7) {
    const text = `${'ab '.repeat(length)}+49 123 456 789 ${'cd '.repeat(40)}`
    const guarded = await guard([started, ...blockOf(0, text), finished], rewriting(number))
    expect(guarded.error).toBeNull()
    expect(textOf(guarded)).toBe(text.replaceAll(number, '#'))
  }
})

test('what reaches into what has left cannot be rewritten, and is a failure', async () => {
  const value = `A ${'x'.repeat(120)} Z`
  const answer = [started, ...blockOf(0, `${'ab '.repeat(30)}${value} end`), finished]
  const guarded = await guard(answer, rewriting(/A x+ Z/g))
  expect(guarded.error).toMatchObject({ code: 'policy_evaluation_unavailable' })
  const passed = await guard(
    answer,
    rewriting(/A x+ Z/g, '#', () => null as never),
  )
  expect(passed.error).toBeNull()
  expect(textOf(passed)).toContain(value)
})

test('what was rewritten is not rewritten again when the next window shows it', async () => {
  const text = `call 12345 ${'ab '.repeat(50)}or 67890 ${'cd '.repeat(50)}`
  const guarded = await guard([started, ...blockOf(0, text), finished], rewriting(/\d{4,}/g))
  expect(guarded).toMatchObject({ error: null })
  expect(textOf(guarded)).toBe(text.replaceAll(/\d{4,}/g, '#'))
})

test('the text of a block is shown with that before it, and the first with the caller’s beginning', async () => {
  const shown: AnswerWindow[] = []
  await guard(
    [started, ...blockOf(0, 'One. '), ...blockOf(1, 'Two.'), finished],
    async (window) => {
      shown.push(window)
      return [{ kind: 'pass' }]
    },
    'Zero. ',
  )
  expect(shown.map(({ text, isLast }) => [text, isLast])).toEqual([
    ['Zero. One. ', true],
    ['One. Two.', true],
  ])
})

test('arguments of calls leave when all of them are decided, and stay JSON', async () => {
  const call = { type: 'tool_call', id: 't', name: 'f' } as const
  const answerOf = (json: string) => [started, ...blockOf(0, json, call), finished]
  expect(textOf(await guard(answerOf('{"to":"Jane Doe"}'), rewriting(/Jane/g)))).toBe(
    '{"to":"# Doe"}',
  )
  const broken = await guard(answerOf('{"to":12345}'), rewriting(/\d+/g))
  expect(broken.error).toMatchObject({ code: 'policy_evaluation_unavailable' })
  expect(textOf(broken)).toBe('')
})

test('sealed reasoning that is rewritten is left out, and other reasoning is rewritten', async () => {
  const reasoning = { type: 'reasoning' } as const
  const [begun, delta, ended] = blockOf(0, 'Jane asks.', reasoning)
  const sealed: AnswerEvent = {
    type: 'block_sealed',
    index: 0,
    opaque: { format: 'messages', data: 'sealed' } as never,
  }
  const open = await guard([started, begun!, delta!, ended!, finished], rewriting(/Jane/g))
  expect(textOf(open)).toBe('# asks.')
  const withheld = await guard(
    [started, begun!, delta!, sealed, ended!, finished],
    rewriting(/Jane/g),
  )
  expect(textOf(withheld)).toBe('')
  expect(withheld.events).toContainEqual(sealed)
  const kept = await guard([started, begun!, delta!, sealed, ended!, finished], pass)
  expect(textOf(kept)).toBe('Jane asks.')
})

test('what a model has said before it failed is decided, and leaves before the error', async () => {
  const failure = new Error('the upstream is gone')
  const [begun, delta] = blockOf(0, 'Half a sentence, 12345')
  const guarded = await guard([started, begun!, delta!, failure], rewriting(/\d{4,}/g))
  expect(guarded.error).toBe(failure)
  expect(textOf(guarded)).toBe('Half a sentence, #')
})

test('a guardrail that blocks ends an answer whose model is silent', async () => {
  let hasEnded = false
  const silence = Promise.withResolvers<void>()
  async function* pieces(): AsyncGenerator<Piece> {
    try {
      for (const event of [started, ...blockOf(0, 'a bomb')])
        yield { format: 'messages', frames: [{ events: [event], source }] }
      await silence.promise
    } finally {
      hasEnded = true
    }
  }
  const guarding = { decide: blocking('bomb'), prefill: '', interrupt: () => silence.resolve() }
  const reading = async () => {
    for await (const _ of guardPieces(pieces(), guarding));
  }
  await expect(reading()).rejects.toBe(blocked)
  expect(hasEnded).toBe(true)
})

test('a decision that cannot be had ends the answer with its error', async () => {
  const gone = new Error('the caller is gone')
  const guarded = await guard([started, ...blockOf(0, long), finished], () => Promise.reject(gone))
  expect(guarded.error).toBe(gone)
})

test('of several guardrails the first that ends the answer counts, and the first that rewrites a place', async () => {
  const decide: DecideWindow = async ({ text }) => {
    const edit = (replacement: string): WindowDecision => ({
      kind: 'rewrite',
      edits: [{ start: 0, end: text.length, replacement }],
      onUnwritable: refuse,
    })
    return [edit('first'), edit('second')]
  }
  expect(textOf(await guard([started, ...blockOf(0, 'words'), finished], decide))).toBe('first')
})

/** Any answers: text blocks, some side by side, in any pieces. */
const blocksOf = fc.array(
  fc.array(
    fc.constantFrom('word ', 'bomb ', '12345 ', '😀', '+49 123 456 ', 'x'.repeat(60), '\n'),
    {
      maxLength: 60,
    },
  ),
  { minLength: 1, maxLength: 3 },
)

test('what leaves depends on the text alone: not on its pieces, nor on when decisions come', async () => {
  const random = (seed: number) => {
    let state = seed
    return () => (state = (state * 1103515245 + 12345) % 2147483648) / 2147483648
  }
  await fc.assert(
    fc.asyncProperty(blocksOf, fc.nat(), fc.nat(1), async (blocks, seed, kind) => {
      const next = random(seed)
      const rewrite = rewriting(/\+?\d[\d ]{3,}\d/g)
      const decide: DecideWindow = async (window) => {
        if (kind === 1 && window.text.includes('bomb'))
          return [{ kind: 'end', toError: () => blocked }]
        return rewrite(window)
      }
      const slow: DecideWindow = async (window) => {
        for (let turns = Math.floor(next() * 6); turns > 0; turns--) await setImmediate()
        return decide(window)
      }
      const texts = blocks.map((parts) => parts.join(''))
      const whole = [started, ...texts.flatMap((text, index) => blockOf(index, text)), finished]
      const chunked = [
        started,
        ...texts.flatMap((text, index): AnswerEvent[] => {
          const [begun, , ended] = blockOf(index, '')
          const deltas: AnswerEvent[] = []
          for (let at = 0; at < text.length;) {
            const length = 1 + Math.floor(next() * 40)
            deltas.push({ type: 'block_delta', index, text: text.slice(at, at + length) })
            at += length
          }
          return [begun!, ...deltas, ended!]
        }),
        finished,
      ]
      const [one, other] = await Promise.all([guard(whole, decide), guard(chunked, slow)])
      const told = (guarded: Guarded) => ({
        texts: texts.map((_, index) => textOf(guarded, index)),
        error: guarded.error,
        others: guarded.events.filter(({ type }) => type !== 'block_delta'),
      })
      expect(told(other)).toEqual(told(one))
      expect(texts.every((_, index) => textOf(one, index).isWellFormed())).toBe(true)
    }),
    { numRuns: 150 },
  )
}, 60_000)
