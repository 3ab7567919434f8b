import { expect, test } from 'vitest'

import type { Frame, Piece } from '#formats/answer.ts'
import { upstreamFormats } from '#formats/formats.ts'
import type { FrameText, FrameTexts } from '#formats/texts/frame-texts.ts'
import { finish } from '#platform/steps/steps.ts'
import { AnswerGuard } from '#policies/guard/answer-guard.ts'
import { answerFacts, ruleSetOf } from '#policies/guard/testing/rule-set-of.ts'

import { HeldFrames } from './held-frames.ts'

type Shown = { texts?: FrameText[]; ended?: string[]; bytes?: number }

const delta = (channel: string, text: string): FrameText => ({ channel, text, kind: 'delta' })
const says = (text: string): Shown => ({ texts: [delta('a', text)] })

/** Frames that are known by their number, on their way past the guard of one rule. */
function holdBy(rule: string) {
  const guard = new AnswerGuard(ruleSetOf([rule]).openAnswer(answerFacts), {
    now: () => 0,
    evaluateAtEnd: async () => [],
  })
  const held = new HeldFrames(guard, () => Promise.resolve())
  const numbers = new Map<Frame, number>()
  return {
    guard,
    /** Frames that arrive together; returns the numbers of those that may leave. */
    pass(...shown: Shown[]): (number | undefined)[] {
      const byFrame = new Map<Frame, FrameTexts>()
      for (const { texts = [], ended = [], bytes = 0 } of shown) {
        const source = { json: {}, bytes: Buffer.alloc(bytes) }
        const frame = { events: [], source } as unknown as Frame
        numbers.set(frame, numbers.size)
        byFrame.set(frame, { texts, ended, hasUnreadable: false })
      }
      const read = (frame: Frame) =>
        byFrame.get(frame) ?? { texts: [], ended: [], hasUnreadable: false }
      const reader = { read, readPlain: () => read({} as Frame) }
      const piece: Piece = { format: 'messages', frames: [...byFrame.keys()] }
      const steps = held.add(piece, reader, () => undefined)
      if (steps) finish(steps)
      return held.take().map((frame) => numbers.get(frame))
    },
  }
}

const rule = 'text.contains("secret")'

test('frames leave whole and in order, those without text behind those with text', () => {
  const { pass } = holdBy(rule)
  expect(pass({}, says('Hello se'), {})).toEqual([0])
  expect(pass(says('cond '))).toEqual([1, 2, 3])
})

test.each([
  ['together', [[says('a se'), says('cr'), says('et b'), says(' c')]]],
  ['one by one', [[says('a se')], [says('cr')], [says('et b')], [says(' c')]]],
])('frames with a forbidden text stay, however they come: %s', (_, pieces) => {
  const { pass, guard } = holdBy(rule)
  expect(pieces.flatMap((piece) => pass(...piece))).toEqual([])
  expect(guard.ended).toMatchObject({ kind: 'block', channel: 'a', cut: 2 })
})

test('the deltas of several channels are not joined to one text', () => {
  const { pass, guard } = holdBy(rule)
  const mixed = { texts: [delta('a', 'sec'), delta('b', 'ret')] }
  expect(pass(mixed, says('ure'), { ended: ['a', 'b'] })).toEqual([0, 1, 2])
  expect(guard.ended).toBeNull()
})

test('a whole text is compared with all deltas before it', () => {
  const whole: Shown = { texts: [{ channel: 'a', text: 'one two ', kind: 'whole' }] }
  expect(holdBy(rule).pass(says('one'), says(' two '), whole)).toEqual([0, 1, 2])
  expect(() => holdBy(rule).pass(says('one'), says(' three'), whole)).toThrow('not an answer')
})

test('a frame whose text the guard does not take never leaves', () => {
  const { pass, guard } = holdBy(rule)
  expect(pass(says('fine'), { ended: ['a'] })).toEqual([0, 1])
  expect(pass(says(' more'))).toEqual([])
  expect(guard.ended).toEqual({ kind: 'unavailable' })
})

test('nor does a frame with one channel too many', () => {
  const { pass, guard } = holdBy(rule)
  const channels = Array.from({ length: 257 }, (_, index) => ({
    texts: [delta(`channel ${index}`, 'fine ')],
  }))
  expect(pass(...channels)).toHaveLength(256)
  expect(guard.ended).toEqual({ kind: 'beyond_limits' })
})

test('a text that ends in its frame does not hold up the next ones, however long and many they are', () => {
  const long = { texts: [delta('a', 'Hi.'), delta('b', 'word '.repeat(2000))], ended: ['a', 'b'] }
  expect(holdBy(rule).pass(long)).toEqual([0])
  const channels = Array.from({ length: 1000 }, (_, index) => `channel ${index}`)
  const many = { texts: channels.map((channel) => delta(channel, 'fine ')), ended: channels }
  expect(holdBy(rule).pass(many)).toEqual([0])
})

test('an answer is beyond the limits when more bytes wait than a process can keep for it', () => {
  const { pass } = holdBy(rule)
  const large = { bytes: 8 * 1024 * 1024 }
  // What may leave does not count any more.
  for (let round = 0; round < 5; round++) expect(pass(large)).toHaveLength(1)
  expect(pass(says('a se'), large, large, large)).toEqual([])
  expect(pass(says('cond '))).toHaveLength(5)
  expect(() => pass(says('a se'), large, large, large, large, { bytes: 1 })).toThrow(
    expect.objectContaining({ code: 'policy_evaluation_unavailable' }),
  )
})

/** Under a scorer that knows every window at once. Returns what the guard was shown, in its pieces. */
function holdByWindows() {
  const shown: string[] = []
  const grid = { steps: [24], overlap: 100 }
  const rules = ruleSetOf([`score("hate") > 0.5`]).openAnswer(answerFacts)
  const scorer = { grid, findKnown: () => [], scoreWindows: async () => [] }
  const guard = new AnswerGuard(rules, {
    now: () => 0,
    evaluateAtEnd: async () => [],
    scorers: [scorer],
  })
  const add = guard.add.bind(guard)
  guard.add = (channel, text, views) => {
    shown.push(text)
    add(channel, text, views)
  }
  const held = new HeldFrames(guard, () => Promise.resolve())
  const reader = upstreamFormats.get('chat_completions')!.createTextReader('')
  const said: string[] = []
  return {
    guard,
    held,
    shown,
    said,
    /** A frame as an upstream sends it; all but the first repeat it with another text. */
    say(text: string, isRepeated = true) {
      const json = { choices: [{ index: 0, delta: { content: text } }] }
      const frame = {
        events: [{ type: 'block_delta', index: 0, text }],
        source: { json, bytes: Buffer.alloc(1) },
        isRepeated,
      } as unknown as Frame
      const steps = held.add({ format: 'chat_completions', frames: [frame] }, reader, (found) =>
        said.push(...found.texts.map((each) => each.text)),
      )
      if (steps) finish(steps)
      return held.take().length
    },
  }
}

test('the guard is shown deltas together, when they may be enough for a window', () => {
  const { say, shown, said } = holdByWindows()
  const left = ['one ', 'two ', 'three ', 'four ', 'five ', 'six ', 'seven ', 'eight '].map(
    (text, index) => say(text, index > 0),
  )
  // A window ends before a space, so the frame of the sixth word waits for the next one.
  expect(left).toEqual([0, 0, 0, 0, 0, 5, 0, 0])
  expect(shown).toEqual(['one ', 'two three four five six '])
  expect(said).toEqual(shown)
})

test('characters of which rules see more are shown at once', () => {
  const { say, shown } = holdByWindows()
  say('one ', false)
  say('two ')
  say('\ufdfa')
  expect(shown).toEqual(['one ', 'two \ufdfa'])
})

test('a frame that is not like the one before is read after the texts that were collected', () => {
  const { say, shown, said, held, guard } = holdByWindows()
  say('one ', false)
  say('two ')
  say('three ', false)
  say('four ')
  expect(said).toEqual(['one ', 'two ', 'three '])
  finish(held.showRest())
  expect(said).toEqual(['one ', 'two ', 'three ', 'four '])
  expect(shown.join('')).toBe('one two three four ')
  guard.end()
  expect(held.take()).toHaveLength(4)
})

test('what was collected of an answer that is given up is recorded', () => {
  const { say, shown, said, held } = holdByWindows()
  say('one ', false)
  say('two ')
  held.readRest()
  expect(said).toEqual(['one ', 'two '])
  expect(shown).toEqual(['one '])
})
