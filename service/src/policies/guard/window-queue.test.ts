import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { judgeGrid, remoteGrid } from '#text/windows/window-grid.ts'

import { AnswerGuard } from './answer-guard.ts'
import { answerRulesOf } from './testing/answer-rules-of.ts'
import { endOf } from './testing/end-of.ts'
import { oneScorer, scoreEach } from './testing/score-each.ts'
import type { ScoreWindows, Window, WindowVerdict } from './window-queue.ts'

const rules = answerRulesOf({ formulas: [{ kind: 'score', atom: 0 }] })
const unavailable = { kind: 'unavailable' }
const sentence = 'some words that say little '

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function openGuard(scoreWindows: ScoreWindows) {
  const onChange = vi.fn<() => void>()
  const options = {
    now: () => Date.now(),
    evaluateAtEnd: async () => [],
    onChange,
    scorers: oneScorer(scoreWindows),
  }
  return { guard: new AnswerGuard(rules, options), onChange }
}

test('a complete window waits three seconds for its verdict, an incomplete one for ever', async () => {
  const signals: AbortSignal[] = []
  const { guard, onChange } = openGuard((_windows, signal) => {
    signals.push(signal)
    return new Promise(() => {})
  })
  guard.add('a', sentence)
  await vi.advanceTimersByTimeAsync(60_000)
  expect([guard.ended, guard.isWaiting]).toEqual([null, false])
  guard.add('a', sentence.repeat(5))
  await vi.advanceTimersByTimeAsync(2999)
  expect([guard.ended, guard.isWaiting, signals[0]?.aborted]).toEqual([null, true, false])
  await vi.advanceTimersByTimeAsync(1)
  expect(endOf(guard)).toEqual(unavailable)
  expect(guard.isWaiting).toBe(false)
  expect(signals.map(({ aborted }) => aborted)).toEqual([true])
  expect(onChange).toHaveBeenCalledTimes(1)
  expect(guard.clearedOf('a')).toBe(0)
})

test('each window has its own three seconds', async () => {
  const answers: (() => void)[] = []
  const { guard } = openGuard(
    scoreEach(() => new Promise((resolve) => answers.push(() => resolve([])))),
  )
  guard.add('a', sentence.repeat(4))
  await vi.advanceTimersByTimeAsync(2000)
  guard.add('a', sentence.repeat(8))
  answers[0]?.()
  await vi.advanceTimersByTimeAsync(2500)
  expect(guard.ended).toBeNull()
  expect(guard.clearedOf('a')).toBeGreaterThan(0)
  await vi.advanceTimersByTimeAsync(500)
  expect(endOf(guard)).toEqual(unavailable)
})

test('windows beyond the fourth wait until one has its verdict, and are sent together', async () => {
  const windows: Window[] = []
  const batches: number[] = []
  const answers: (() => void)[] = []
  const { guard } = openGuard((batch) => {
    windows.push(...batch)
    batches.push(batch.length)
    return new Promise((resolve) => answers.push(() => resolve(batch.map(() => []))))
  })
  const text = sentence.repeat(60)
  guard.add('a', text)
  expect(windows).toHaveLength(4)
  answers[2]?.()
  await vi.advanceTimersByTimeAsync(0)
  expect(batches).toEqual([1, 1, 1, 1, 3])
  expect(guard.clearedOf('a')).toBe(0)
  answers[0]?.()
  await vi.advanceTimersByTimeAsync(0)
  expect(guard.clearedOf('a')).toBe(windows[0]?.end)
  for (let number = 0; number < answers.length; number++) answers[number]?.()
  guard.end()
  for (let turn = 0; turn < 9; turn++) {
    await vi.advanceTimersByTimeAsync(0)
    for (const answer of answers) answer()
  }
  expect(guard.clearedOf('a')).toBe(text.length)
  expect(windows.map(({ end }) => end).slice(0, -1)).toEqual(
    windows.slice(1).map(({ start }) => start),
  )
  expect(windows.filter(({ isLast }) => isLast)).toEqual([windows.at(-1)])
})

test('a window that waits behind others has its three seconds when it is sent', async () => {
  const sent: number[] = []
  const { guard } = openGuard(async (windows) => {
    sent.push(windows.length)
    await new Promise((resolve) => setTimeout(resolve, 2000))
    return windows.map(() => [])
  })
  guard.add('a', sentence.repeat(150))
  guard.end()
  await vi.advanceTimersByTimeAsync(4000)
  expect([guard.ended, guard.clearedOf('a')]).toEqual([null, sentence.length * 150])
  expect(sent).toEqual([1, 1, 1, 1, 13])
})

test('a scorer that leaves out a window is one that fails', async () => {
  const { guard } = openGuard(async () => [])
  guard.add('a', sentence)
  guard.endChannel('a')
  await vi.advanceTimersByTimeAsync(0)
  expect(endOf(guard)).toEqual(unavailable)
})

test('a scorer that throws at once is one that fails', async () => {
  const { guard, onChange } = openGuard(() => {
    throw new Error('no connection')
  })
  guard.add('a', sentence)
  guard.endChannel('a')
  await vi.advanceTimersByTimeAsync(0)
  expect(endOf(guard)).toEqual(unavailable)
  expect(onChange).toHaveBeenCalledTimes(1)
})

const failed = (...atoms: number[]) => ({ atoms, error: new Error('no verdict') })
const blocked = { kind: 'block', rule: 0, isError: false, channel: 'a' }

/** Windows of one channel that are sent one by one, and answered by their number. */
function openWindows() {
  const windows: Window[] = []
  const answers: ((verdict: WindowVerdict) => void)[] = []
  const { guard } = openGuard((batch) => {
    windows.push(...batch)
    return new Promise((resolve) => answers.push((verdict) => resolve([verdict])))
  })
  guard.add('a', sentence.repeat(60))
  async function answer(number: number, verdict: WindowVerdict) {
    answers[number]?.(verdict)
    await vi.advanceTimersByTimeAsync(0)
  }
  return { guard, windows, answer }
}

test('a match before a window without a verdict blocks, whichever is known first', async () => {
  const { guard, windows, answer } = openWindows()
  await answer(2, failed())
  await answer(1, [0])
  expect([guard.ended, guard.clearedOf('a')]).toEqual([null, 0])
  await answer(0, [])
  expect(endOf(guard)).toEqual({ ...blocked, cut: windows[1]?.start })
  expect(guard.clearedOf('a')).toBe(windows[1]?.start)
})

test('a match in the window without a verdict blocks at its start', async () => {
  const { guard, windows, answer } = openWindows()
  await answer(1, failed(0))
  await answer(0, [])
  expect(endOf(guard)).toEqual({ ...blocked, cut: windows[1]?.start })
})

test('a match behind a window without a verdict is not waited for', async () => {
  const { guard, windows, answer } = openWindows()
  await answer(2, [0])
  await answer(1, failed())
  expect(guard.ended).toBeNull()
  await answer(0, [])
  expect(endOf(guard)).toEqual(unavailable)
  expect(guard.clearedOf('a')).toBe(windows[1]?.start)
})

test('after a failure no window is sent, and those before it have no more than their three seconds', async () => {
  const { guard, windows, answer } = openWindows()
  await vi.advanceTimersByTimeAsync(2000)
  await answer(3, failed())
  expect([guard.ended, windows.length]).toEqual([null, 4])
  await answer(1, [0])
  await vi.advanceTimersByTimeAsync(999)
  expect(guard.ended).toBeNull()
  await vi.advanceTimersByTimeAsync(1)
  expect(endOf(guard)).toEqual(unavailable)
})

test('of windows that are sent together a match counts that lies before the failure', async () => {
  const { guard } = openGuard(async (batch) =>
    batch.map((_, number) => (number === 1 ? [0] : number === 2 ? failed() : [])),
  )
  guard.add('a', sentence.repeat(60))
  await vi.advanceTimersByTimeAsync(0)
  expect(endOf(guard)).toMatchObject(blocked)
})

test('where the whole answer is waited for, nothing before the match leaves either', async () => {
  const whole = answerRulesOf({ formulas: [{ kind: 'score', atom: 0 }, null] })
  const guard = new AnswerGuard(whole, {
    now: () => Date.now(),
    evaluateAtEnd: async () => [],
    scorers: oneScorer(async (batch) => batch.map(({ start }) => (start > 0 ? failed(0) : []))),
  })
  guard.add('a', sentence.repeat(12))
  await vi.advanceTimersByTimeAsync(0)
  expect(endOf(guard)).toMatchObject(blocked)
  expect(guard.clearedOf('a')).toBe(0)
})

test('no more windows are sent together than asked for', async () => {
  const sent: number[] = []
  const guard = new AnswerGuard(rules, {
    now: () => Date.now(),
    evaluateAtEnd: async () => [],
    scorers: [
      {
        grid: judgeGrid,
        windowsTogether: 2,
        async scoreWindows(batch) {
          sent.push(batch.length)
          return batch.map(() => [])
        },
      },
    ],
  })
  guard.add('a', sentence.repeat(60))
  await vi.advanceTimersByTimeAsync(0)
  expect(sent).toEqual([1, 1, 1, 1, 2, 1])
})

test('what one scorer finds counts where another fails, whichever is first', async () => {
  const answers: (() => void)[] = []
  const failing: ScoreWindows = async () => Promise.reject(new Error('The scorer is away.'))
  const finding = scoreEach(
    ({ start }) => new Promise((resolve) => answers.push(() => resolve(start === 0 ? [0] : []))),
  )
  const guard = new AnswerGuard(rules, {
    now: () => Date.now(),
    evaluateAtEnd: async () => [],
    scorers: [...oneScorer(failing), { grid: remoteGrid(), scoreWindows: finding }],
  })
  guard.add('a', sentence.repeat(5))
  await vi.advanceTimersByTimeAsync(100)
  expect([guard.ended, guard.isWaiting]).toEqual([null, true])
  for (const answer of answers) answer()
  await vi.advanceTimersByTimeAsync(0)
  expect(endOf(guard)).toMatchObject({ kind: 'block', cut: 0 })
})

test('questions to a scorer that is late are given up, also while another one is waited for', async () => {
  const signals: AbortSignal[] = []
  const late: ScoreWindows = (_, signal) => {
    signals.push(signal)
    return new Promise(() => {})
  }
  const answers: (() => void)[] = []
  const other = scoreEach(() => new Promise((resolve) => answers.push(() => resolve([]))))
  const guard = new AnswerGuard(rules, {
    now: () => Date.now(),
    evaluateAtEnd: async () => [],
    scorers: [...oneScorer(late), { grid: { steps: [200], overlap: 0 }, scoreWindows: other }],
  })
  guard.add('a', sentence.repeat(5))
  await vi.advanceTimersByTimeAsync(2000)
  guard.add('a', sentence.repeat(5))
  await vi.advanceTimersByTimeAsync(1000)
  expect([guard.ended, guard.isWaiting]).toEqual([null, true])
  expect(signals.length).toBeGreaterThan(0)
  expect(signals.every(({ aborted }) => aborted)).toBe(true)
  for (const answer of answers) answer()
  await vi.advanceTimersByTimeAsync(0)
  expect(endOf(guard)).toEqual(unavailable)
})

test('a window that no other scorer can still block ends the answer at once', async () => {
  const failing: ScoreWindows = async () => Promise.reject(new Error('The scorer is away.'))
  const guard = new AnswerGuard(rules, {
    now: () => Date.now(),
    evaluateAtEnd: async () => [],
    scorers: [
      ...oneScorer(failing),
      { grid: remoteGrid(), scoreWindows: async (batch) => batch.map(() => []) },
    ],
  })
  guard.add('a', sentence.repeat(5))
  await vi.advanceTimersByTimeAsync(0)
  expect(endOf(guard)).toEqual(unavailable)
})

test('after stop no verdict counts, and nothing more leaves', async () => {
  let aborted = false
  const { guard, onChange } = openGuard(
    scoreEach(async (_window, signal) => {
      await Promise.resolve()
      aborted = signal.aborted
      return []
    }),
  )
  guard.add('a', sentence)
  guard.endChannel('a')
  guard.stop()
  await vi.advanceTimersByTimeAsync(10_000)
  expect([aborted, guard.isWaiting, guard.clearedOf('a')]).toEqual([true, false, 0])
  expect(onChange).not.toHaveBeenCalled()
})

test('rules that ask for scores without a scorer let nothing pass', () => {
  const guard = new AnswerGuard(rules, { now: () => 0, evaluateAtEnd: async () => [] })
  expect(endOf(guard)).toEqual(unavailable)
  guard.add('a', sentence)
  expect(guard.clearedOf('a')).toBe(0)
})

test('no windows are cut where no enforcing rule asks for scores', () => {
  const scoreWindows = vi.fn<ScoreWindows>()
  const monitoring = answerRulesOf({ monitoring: [{ kind: 'score', atom: 0 }] })
  const guard = new AnswerGuard(monitoring, {
    now: () => 0,
    evaluateAtEnd: async () => [],
    scorers: oneScorer(scoreWindows),
  })
  guard.add('a', sentence.repeat(20))
  guard.end()
  expect(scoreWindows).not.toHaveBeenCalled()
  expect(guard.clearedOf('a')).toBe(sentence.length * 20)
})
