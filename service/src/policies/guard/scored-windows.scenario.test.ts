import { sizeOf } from '@gatehouse/tools/testing/size-of'
import { expect, test } from 'vitest'

import { AnswerGuard } from './answer-guard.ts'
import { endOf } from './testing/end-of.ts'
import {
  type Arrival,
  type Enforced,
  enforceWhole,
  type TestRules,
} from './testing/enforce-whole.ts'
import { createChoices, type Random } from './testing/random-case.ts'
import { createScoredRules, createScoredText, grids, hitsOf } from './testing/scored-case.ts'
import type { ScoreWindows, Window, WindowScorer } from './window-queue.ts'

const cases = sizeOf({ usual: 2000, long: 100_000, variable: 'GUARD_SCORED_CASES' })
const seed = Number(process.env['GUARD_SEED'] ?? Date.now() % 2 ** 31)

type Pending = { window: Window; answer(): void; fail(): void }

/** A scorer of one atom that answers when it is told to, in any order, and knows some windows at once. */
function createScorer(atom: number, pending: Pending[], random: Random) {
  let [inFlight, inFlightMost] = [0, 0]
  const knowsSome = random.isOneIn(2)
  const hitsIn = (text: string) => hitsOf(text).filter((hit) => hit === atom)
  const score = (window: Window) => {
    const { promise, resolve, reject } = Promise.withResolvers<readonly number[]>()
    pending.push({
      window,
      answer: () => resolve(hitsIn(window.text)),
      fail: () => reject(new Error('The scorer is away.')),
    })
    return promise
  }
  const scoreWindows: ScoreWindows = async (windows) => {
    inFlightMost = Math.max(inFlightMost, ++inFlight)
    const verdicts = await Promise.all(windows.map(score))
    inFlight--
    return verdicts
  }
  const scorer: WindowScorer = {
    grid: grids[atom]!,
    scoreWindows,
    findKnown: ({ text }) => (knowsSome && random.isOneIn(2) ? hitsIn(text) : undefined),
  }
  return {
    scorer,
    get inFlightMost() {
      return inFlightMost
    },
  }
}

type Run = { test: TestRules; arrivals: Arrival[]; expected: Enforced; canFail: boolean }

/** Lets promises that are settled go on. */
async function settle() {
  for (let turn = 0; turn < 8; turn++) await Promise.resolve()
}

/** Returns what is wrong, or null. */
async function run({ test: whole, arrivals, expected, canFail }: Run, random: Random) {
  const pending: Pending[] = []
  const scorers = [...grids.keys()].map((atom) => createScorer(atom, pending, random))
  let changes = 0
  const guard = new AnswerGuard(whole.rules, {
    now: () => 0,
    evaluateAtEnd: async () => [],
    scorers: scorers.map(({ scorer }) => scorer),
    onChange: () => changes++,
  })
  const stateOf = () =>
    JSON.stringify([
      endOf(guard),
      [...expected.cleared.keys()].map((name) => guard.clearedOf(name)),
    ])
  const hasLeftTooMuch = () =>
    [...expected.cleared].some(([channel, mayLeave]) => guard.clearedOf(channel) > mayLeave)
  let hasFailed = false

  const answerOne = async () => {
    const [one] = pending.splice(random.below(pending.length), 1)
    if (!one) return true
    const before = { state: stateOf(), changes }
    const fails = canFail && random.isOneIn(5)
    hasFailed ||= fails && guard.ended === null
    if (fails) one.fail()
    else one.answer()
    await settle()
    return (before.state === stateOf()) === (before.changes === changes)
  }

  for (const arrival of arrivals) {
    const text = 'text' in arrival ? arrival.text : ''
    for (let at = 0; at < text.length;) {
      const length = 1 + random.below(90)
      guard.add(arrival.channel, text.slice(at, at + length))
      at += length
      if (random.isOneIn(3) && !(await answerOne())) return 'a change is reported, and nothing else'
      while (guard.isWaiting && guard.heldMost > 2500) await answerOne()
      if (hasLeftTooMuch()) return 'too much has left'
    }
    if ('isEnd' in arrival) guard.endChannel(arrival.channel)
  }
  guard.end()
  while (guard.isWaiting) {
    if (!(await answerOne())) return 'a change is reported, and nothing else'
    if (hasLeftTooMuch()) return 'too much has left'
  }
  if (scorers.some(({ inFlightMost }) => inFlightMost > 4)) {
    return 'a scorer is asked at most four questions at once'
  }
  if (hasFailed && guard.ended?.kind === 'unavailable') return null
  if (hasFailed && guard.ended === null) return 'a failure is not passed over'
  const { rule, isError, channel, cut } = expected
  // Which of several matches blocks depends then on what is known.
  if (hasFailed && guard.ended) return rule === null ? 'nothing blocks without a match' : null
  const end = rule === null ? null : { kind: 'block', rule, isError, channel, cut }
  if (JSON.stringify(endOf(guard)) !== JSON.stringify(end)) return { ended: endOf(guard), end }
  const isCleared = [...expected.cleared].every(([name, count]) => guard.clearedOf(name) === count)
  return isCleared ? null : 'everything before the cut leaves'
}

const patience = { timeout: 60_000 + cases * 30 }

test(
  'whenever the scorer answers, the answer is enforced like the whole answer',
  patience,
  async () => {
    let [blocked, passed] = [0, 0]
    for (let number = 0; number < cases; number++) {
      const random = createChoices(seed + number)
      const whole = createScoredRules(random)
      const arrivals = Array.from({ length: 1 + random.below(2) }, (_, index): Arrival[] => {
        const channel = String(index)
        const text = { channel, text: createScoredText(random, { most: 220, rarity: 120 }) }
        return random.isOneIn(3) ? [text] : [text, { channel, isEnd: true }]
      }).flat()
      const expected = enforceWhole(whole, arrivals)
      const canFail = random.isOneIn(4)
      const difference = await run({ test: whole, arrivals, expected, canFail }, random)
      expect({ seed: seed + number, difference }).toEqual({ seed: seed + number, difference: null })
      if (expected.rule === null) passed++
      else blocked++
    }
    console.log(`scored guard: ${cases} cases from seed ${seed}, ${blocked} of them blocked`)
    expect(Math.min(blocked, passed)).toBeGreaterThan(cases / 10)
  },
)
