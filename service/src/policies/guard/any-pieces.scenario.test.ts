import { setImmediate } from 'node:timers/promises'

import { sizeOf } from '@gatehouse/tools/testing/size-of'
import { expect, test } from 'vitest'

import type { AnswerRules } from '#policies/rules/answer-rules.ts'
import { loadPatternEngine, type PatternSet } from '#text/pattern-engine.ts'
import type { SearchElsewhere } from '#text/pattern-set.ts'

import { AnswerGuard } from './answer-guard.ts'
import { endOf } from './testing/end-of.ts'
import { type Arrival, type Enforced, enforceWhole, isInPair } from './testing/enforce-whole.ts'
import { type Case, createCase, createChoices, type Random } from './testing/random-case.ts'

const cases = sizeOf({ usual: 100_000, long: 2_000_000, variable: 'GUARD_CASES' })
const seed = Number(process.env['GUARD_SEED'] ?? Date.now() % 2 ** 31)

/** What is wrong with what the guard did, or null. Feeds it the arrivals in pieces of any length. */
async function findDifference({ test: whole, arrivals }: Case, expected: Enforced, random: Random) {
  const texts = new Map<string, string>()
  let changes = 0
  const guard = new AnswerGuard(whole.rules, {
    now: () => 0,
    evaluateAtEnd: async () => whole.evaluateAtEnd([...texts.values()]),
    onChange: () => changes++,
    owner: 'org_1',
  })
  const longest = random.pick([1, 3, 10, 80])

  /** What has left is before the cut, is never taken back, and ends with a whole character. */
  const checkCleared = () => {
    for (const [channel, text] of texts) {
      const cleared = guard.clearedOf(channel)
      const mayLeave = expected.cleared.get(channel) ?? 0
      if (cleared > mayLeave || isInPair(text, cleared)) return { channel, cleared, mayLeave }
    }
    return null
  }
  for (const arrival of arrivals) {
    const { channel } = arrival
    for (const piece of cutPieces(arrival, longest, random)) {
      texts.set(channel, (texts.get(channel) ?? '') + piece)
      add(guard, { channel, piece, whole: texts.get(channel)! }, random)
      if (whole.rules.elsewhere && random.isOneIn(5)) await setImmediate()
      const wrong = checkCleared()
      if (wrong) return { wrong, expected }
    }
    if ('isEnd' in arrival) guard.endChannel(channel)
    const wrong = checkCleared()
    if (wrong) return { wrong, expected }
  }
  guard.end()
  const wrong = checkCleared()
  if (wrong) return { wrong, expected }
  const isWaiting = guard.isWaiting
  const changesBefore = changes
  while (guard.isWaiting && changes < 1000) await setImmediate()
  // Waiters are told of the last change, too, or they would wait for ever.
  if (guard.isWaiting || (isWaiting && changes === changesBefore)) return { isWaiting, changes }
  if (!whole.rules.elsewhere && changes !== Number(isWaiting)) return { isWaiting, changes }
  const { rule, isError, channel, cut } = expected
  const end = rule === null ? null : { kind: 'block', rule, isError, channel, cut }
  const isSame = JSON.stringify(endOf(guard)) === JSON.stringify(end)
  const isCleared = [...texts.keys()].every(
    (name) => guard.clearedOf(name) === (expected.cleared.get(name) ?? 0),
  )
  return isSame && isCleared ? null : { ended: endOf(guard), end, cleared: isCleared }
}

function cutPieces(arrival: Arrival, longest: number, random: Random): string[] {
  if (!('text' in arrival)) return []
  const { text } = arrival
  const pieces = text === '' ? [''] : []
  for (let at = 0; at < text.length;) {
    const length = 1 + random.below(longest)
    pieces.push(text.slice(at, at + length))
    at += length
  }
  return pieces
}

/** A text may also come as the whole of its channel so far. */
function add(
  guard: AnswerGuard,
  { channel, piece, whole }: { channel: string; piece: string; whole: string },
  random: Random,
) {
  guard.add(channel, random.isOneIn(10) ? guard.restOf(channel, whole)! : piece)
}

type Comparison = {
  count: number
  createPatterns?: (patterns: readonly string[]) => PatternSet
  /** What the guard is given in place of the rules. */
  change?: (rules: AnswerRules) => AnswerRules
}

/** Stops at the first difference. */
async function compare({ count, createPatterns, change = (rules) => rules }: Comparison) {
  let blocked = 0
  for (let number = 0; number < count; number++) {
    const random = createChoices(seed + number)
    const made = createCase(random, createPatterns)
    const expected = enforceWhole(made.test, made.arrivals)
    const given = { ...made, test: { ...made.test, rules: change(made.test.rules) } }
    const difference = await findDifference(given, expected, random)
    if (difference) return { seed: seed + number, blocked, difference, arrivals: made.arrivals }
    if (expected.rule !== null) blocked++
    // The runner hears from this process now and then.
    if (number % 1000 === 0) await setImmediate()
  }
  return { seed, blocked, difference: null }
}

/** Ten times what a busy machine needs. */
const patience = { timeout: 60_000 + cases * 3 }

// GUARD_CASES sets the number of cases, GUARD_SEED repeats a run.
test('any answer in any pieces is enforced like the whole answer', patience, async () => {
  const result = await compare({ count: cases })
  console.log(`guard: ${cases} cases from seed ${seed}, ${result.blocked} of them blocked`)
  expect(result).toMatchObject({ difference: null })
  expect(result.blocked).toBeGreaterThan(cases / 5)
  expect(result.blocked).toBeLessThan(cases * 0.9)
})

test('so it is with the pattern engine of the service', patience, async () => {
  const { compileSet } = loadPatternEngine()
  const result = await compare({ count: Math.ceil(cases / 40), createPatterns: compileSet })
  expect(result).toMatchObject({ difference: null })
})

/** Searches that are done elsewhere: their results come a little later. */
function createElsewhere({ patterns, patternCount }: AnswerRules): SearchElsewhere {
  const fail = () => Promise.reject(new Error('Answers do not ask for this.'))
  return {
    isNeeded: true,
    async findFirst(text, from, { signal }) {
      for (let turns = text.length % 3; turns > 0; turns--) await Promise.resolve()
      signal.throwIfAborted()
      return Array.from({ length: patternCount }, (_, number) => {
        const match = patterns.find(number, text, from)
        return match && { number, ...match }
      }).filter((found) => found !== null)
    },
    hits: fail,
    findAll: fail,
  }
}

test('so it is where patterns are looked for elsewhere', patience, async () => {
  const change = (rules: AnswerRules) => ({ ...rules, elsewhere: createElsewhere(rules) })
  const result = await compare({ count: Math.ceil(cases / 5), change })
  expect(result).toMatchObject({ difference: null })
  expect(result.blocked).toBeGreaterThan(cases / 25)
})

test('a hold-back that is one character smaller is found out', patience, async () => {
  const change = (rules: AnswerRules) => ({
    ...rules,
    patternHold: Math.max(0, rules.patternHold - 1),
  })
  const result = await compare({ count: Math.max(cases, 50_000), change })
  expect(result.difference).not.toBeNull()
})
