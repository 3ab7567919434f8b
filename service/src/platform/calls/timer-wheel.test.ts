import { expect, onTestFinished, test, vi } from 'vitest'

import { type WheelDeadline, TimerWheel } from './timer-wheel.ts'

/** A wheel of eight slots of ten milliseconds, and what was due in it, by name and time. */
function createWheel() {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  let now = 1_000_003
  const wheel = new TimerWheel({ nowMs: () => now, tickMs: 10, slots: 8 })
  const start = now
  const due: string[] = []
  return {
    wheel,
    due,
    begin: (name: string, ms: number, onDue = () => {}): WheelDeadline =>
      wheel.start(ms, {
        onDue() {
          due.push(`${name} ${now - start}`)
          onDue()
        },
      }),
    /** Time passes as it does for a process that is not busy. */
    pass(ms: number) {
      for (let passed = 0; passed < ms; passed++) {
        now++
        vi.advanceTimersByTime(1)
      }
    },
    /** The process stands still. */
    freeze: (ms: number) => void (now += ms),
  }
}

test('a deadline is never early, and at most two ticks late', () => {
  for (const ms of [0, 1, 7, 10, 33, 79, 80, 81, 160, 400, 1234]) {
    const { begin, due, pass } = createWheel()
    begin('one', ms)
    pass(ms + 20)
    expect(due).toHaveLength(1)
    const at = Number(due[0]?.split(' ')[1])
    expect(at).toBeGreaterThanOrEqual(ms)
    expect(at).toBeLessThanOrEqual(ms + 20)
  }
})

test('deadlines are due in their order, also those that are further away than the wheel is large', () => {
  const { begin, due, pass, wheel } = createWheel()
  for (const ms of [500, 20, 85, 260, 5, 90, 165]) begin(String(ms), ms)
  pass(600)
  expect(due.map((text) => text.split(' ')[0])).toEqual([
    '5',
    '20',
    '85',
    '90',
    '165',
    '260',
    '500',
  ])
  expect(wheel.size).toBe(0)
})

test('a deadline that is stopped is never due, and stopping it again does nothing', () => {
  const { begin, due, pass, wheel } = createWheel()
  const stopped = begin('stopped', 30)
  begin('other', 30)
  stopped.stop()
  stopped.stop()
  expect(wheel.size).toBe(1)
  pass(200)
  expect(due).toEqual(['other 40'])
  stopped.stop()
})

test('a deadline that moves is due when it was moved to, later or earlier', () => {
  const { begin, due, pass } = createWheel()
  const later = begin('later', 30)
  const earlier = begin('earlier', 300)
  pass(20)
  later.restart(200)
  earlier.restart(30)
  pass(30)
  later.restart(200)
  pass(300)
  expect(due).toEqual(['earlier 60', 'later 260'])
})

test('a deadline that has passed can be started again', () => {
  const { begin, due, pass } = createWheel()
  const again = begin('again', 10)
  pass(50)
  again.restart(20)
  pass(50)
  expect(due).toEqual(['again 20', 'again 80'])
})

test('what is due may stop, move and start deadlines of the same tick', () => {
  const { begin, due, pass, wheel } = createWheel()
  const others: WheelDeadline[] = []
  others.push(begin('stopped', 10), begin('moved', 10))
  begin('first', 10, () => {
    others[0]?.stop()
    others[1]?.restart(100)
    begin('new', 0)
  })
  pass(200)
  expect(due).toEqual(['first 20', 'new 30', 'moved 130'])
  expect(wheel.size).toBe(0)
})

test('after a long standstill all that is overdue comes at once, in its order, and nothing else', () => {
  const { begin, due, freeze, pass } = createWheel()
  for (const ms of [700, 30, 250]) begin(String(ms), ms)
  begin('moved', 40).restart(600)
  begin('later', 10_000)
  freeze(5000)
  pass(20)
  expect(due.map((text) => text.split(' ')[0])).toEqual(['30', '250', 'moved', '700'])
  pass(5000)
  expect(due).toHaveLength(5)
})

test('a clock that stands still or is set back makes no deadline early', () => {
  const { begin, due, freeze, pass } = createWheel()
  begin('one', 100)
  freeze(-1000)
  pass(900)
  expect(due).toEqual([])
  pass(220)
  expect(due).toEqual(['one 110'])
})

test('an empty wheel has no timer, and the timer keeps no process alive', () => {
  const { begin, pass } = createWheel()
  expect(vi.getTimerCount()).toBe(0)
  const deadline = begin('one', 50)
  begin('two', 50)
  expect(vi.getTimerCount()).toBe(1)
  deadline.stop()
  pass(100)
  expect(vi.getTimerCount()).toBe(0)
})

test('many deadlines that come and go are all due when they should be', () => {
  const { wheel, pass } = createWheel()
  let seed = 7
  const random = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below
  const open = new Map<WheelDeadline, { dueMs: number }>()
  let now = 0
  let wrong = 0
  for (let step = 0; step < 2000; step++) {
    const ms = random(700)
    const dueMs = { dueMs: now + ms }
    const deadline: WheelDeadline = wheel.start(ms, {
      onDue() {
        const expected = open.get(deadline)?.dueMs ?? Infinity
        if (now < expected || now > expected + 20) wrong++
        open.delete(deadline)
      },
    })
    open.set(deadline, dueMs)
    const [other] = [...open.keys()].slice(random(open.size))
    if (other && random(3) === 0) {
      other.stop()
      open.delete(other)
    } else if (other && random(2) === 0) {
      const moved = random(700)
      other.restart(moved)
      open.set(other, { dueMs: now + moved })
    }
    now++
    pass(1)
  }
  expect(wheel.size).toBe(open.size)
  for (; now < 3000; now++) pass(1)
  expect([wrong, open.size, wheel.size]).toEqual([0, 0, 0])
})
