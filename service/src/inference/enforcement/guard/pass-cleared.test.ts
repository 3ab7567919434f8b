import { expect, onTestFinished, test } from 'vitest'

import type { Frame, Piece } from '#formats/answer.ts'
import type { FrameTexts } from '#formats/texts/frame-texts.ts'
import { Cancellation } from '#platform/calls/cancellation.ts'
import { goOnLater } from '#platform/steps/shared-turns.ts'
import { AnswerGuard } from '#policies/guard/answer-guard.ts'
import { answerFacts, ruleSetOf } from '#policies/guard/testing/rule-set-of.ts'

import { Changes, passCleared } from './pass-cleared.ts'

test('a change wakes all that wait for it, and nothing that waits later', async () => {
  const changes = new Changes()
  changes.announce()
  expect(changes.isAwaited).toBe(false)
  const [one, other] = [changes.next(), changes.next()]
  expect(changes.isAwaited).toBe(true)
  changes.announce()
  expect(changes.isAwaited).toBe(false)
  await Promise.all([one, other])
  // A promise that outlives a wait would keep something of every wait of a long answer.
  expect(changes.next()).not.toBe(one)
})

/** Pieces that arrive when the test says so; each frame says one word in one channel. */
function createArrivals() {
  const words = new Map<Frame, FrameTexts>()
  let arrival = Promise.withResolvers<Piece | null>()
  return {
    read: (frame: Frame): FrameTexts =>
      words.get(frame) ?? { texts: [], ended: [], hasUnreadable: false },
    wordOf: (frame: Frame) => words.get(frame)?.texts[0]?.text,
    arrive(...frames: (readonly [channel: string, word: string])[]) {
      const piece = frames.map(([channel, text]) => {
        const source = { json: {}, bytes: Buffer.from(text) }
        const frame = { events: [], source } as unknown as Frame
        words.set(frame, {
          texts: [{ channel, text, kind: 'delta' }],
          ended: [],
          hasUnreadable: false,
        })
        return frame
      })
      arrival.resolve({ format: 'messages', frames: piece })
    },
    end: () => arrival.resolve(null),
    async *pieces(): AsyncGenerator<Piece> {
      for (let piece = await arrival.promise; piece; piece = await arrival.promise) {
        arrival = Promise.withResolvers()
        yield piece
      }
    },
  }
}

/** Keeps all slices of the event loop busy, so that work of this owner has to wait for its turn. */
function keepBusy(owner: string) {
  let isOver = false
  const other = {
    advance(untilMs: number) {
      while (performance.now() < untilMs);
      return isOver
    },
  }
  for (let work = 0; work < 25; work++) goOnLater(owner, other)
  onTestFinished(() => void (isOver = true))
  return () => (isOver = true)
}

const turn = () => new Promise(setImmediate)

test('what arrives while the caller takes a piece stays in its order, however long it takes to look at it', async () => {
  const changes = new Changes()
  const guard = new AnswerGuard(ruleSetOf(['text.contains("secret")']).openAnswer(answerFacts), {
    now: () => 0,
    evaluateAtEnd: async () => [],
  })
  const { pieces, arrive, end, read, wordOf } = createArrivals()
  const passing = passCleared(pieces(), {
    guard: guard as never,
    changes,
    asker: { owner: 'busy', signal: new AbortController().signal },
    cancellation: new Cancellation(),
    createReader: () => ({ read, readPlain: () => read({} as Frame) }),
    onTexts: () => undefined,
    onEnd: async () => undefined,
    toError: () => {
      throw new Error('The answer was ended.')
    },
  })
  const left: (string | undefined)[] = []
  const take = async () => {
    const { value, done } = await passing.next()
    left.push(...(value?.frames.map(wordOf) ?? []))
    return done
  }
  const first = take()
  arrive(['a', 'one '])
  await first

  // The caller is still busy with the first piece.
  const goOn = keepBusy('busy')
  arrive(['a', 'two '], ['b', 'three '])
  await turn()
  const rest = (async () => {
    while (!(await take()));
  })()
  await turn()
  arrive(['a', 'four '])
  await turn()
  goOn()
  for (let turns = 0; turns < 100; turns++) await turn()
  end()
  await rest
  expect(left).toEqual(['one ', 'two ', 'three ', 'four '])
})
