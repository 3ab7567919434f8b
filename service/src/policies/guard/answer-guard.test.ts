import { setImmediate } from 'node:timers/promises'

import { describe, expect, test, vi } from 'vitest'

import type { AnswerFormula, AnswerRules } from '#policies/rules/answer-rules.ts'

import { AnswerGuard } from './answer-guard.ts'
import type { GuardOptions } from './guard-options.ts'
import { answerRulesOf } from './testing/answer-rules-of.ts'
import { endOf } from './testing/end-of.ts'
import { oneScorer, scoreEach } from './testing/score-each.ts'

const secret: AnswerFormula = { kind: 'literal', literal: 0 }
const always: AnswerFormula = { kind: 'constant', value: true }
const never: AnswerFormula = { kind: 'constant', value: false }
const withSecret = answerRulesOf({ literals: ['secret'], formulas: [secret] })
const withPattern = answerRulesOf({
  patterns: [['k[0-9]{4,8}', 9]],
  formulas: [{ kind: 'pattern', pattern: 0 }],
})
const needsWhole = answerRulesOf({ formulas: [null] })
const unavailable = { kind: 'unavailable' }
const beyondLimits = { kind: 'beyond_limits' }

const guardOf = (rules: AnswerRules, options: Partial<GuardOptions> = {}) =>
  new AnswerGuard(rules, { now: () => 0, evaluateAtEnd: async () => [], ...options })

const heldOf = (guard: AnswerGuard, channel: string) =>
  guard.lengthOf(channel) - guard.clearedOf(channel)

describe('what leaves', () => {
  test('literals hold only what may become one of them', () => {
    const guard = guardOf(withSecret)
    guard.add('a', 'This is a fine day, se')
    // The last character too could be changed by one that combines with it.
    expect(heldOf(guard, 'a')).toBe(2)
    guard.add('a', 'venth of June ')
    expect(heldOf(guard, 'a')).toBe(0)
    guard.add('a', 'and a sec\u200bret')
    expect(guard.ended).toBeNull()
    guard.add('a', '! ')
    expect(endOf(guard)).toEqual({ kind: 'block', rule: 0, isError: false, channel: 'a', cut: 42 })
    expect(guard.clearedOf('a')).toBe(42)
    expect(guard.heldMost).toBe(7)
  })

  test('patterns hold their widest match, and one character that may be combined with', () => {
    const guard = guardOf(withPattern)
    for (const character of 'nothing to see in this answer, k123 and so on') {
      guard.add('a', character)
      expect(heldOf(guard, 'a')).toBeLessThanOrEqual(10)
    }
    guard.endChannel('a')
    expect(heldOf(guard, 'a')).toBe(0)
    expect(guard.heldMost).toBe(10)
    guard.end()
    expect(guard.ended).toBeNull()
  })

  test('monitoring rules hold nothing', () => {
    const guard = guardOf(answerRulesOf({ literals: ['secret'], monitoring: [secret] }))
    guard.add('a', 'secre')
    guard.add('a', 't e\u0301')
    expect(guard.clearedOf('a')).toBe(9)
    guard.add('a', guard.restOf('a', 'secret e\u0301 and more') ?? '')
    expect(guard.clearedOf('a')).toBe(18)
    guard.endChannel('a')
    guard.add('a', 'x')
    for (let channel = 0; channel < 300; channel++) guard.add(`${channel}`, 'x')
    guard.end()
    expect(guard.ended).toBeNull()
    expect(guard.clearedOf('a')).toBe(19)
    expect(guard.heldMost).toBe(0)
  })

  test('text of a channel waits for text of another that came before it', () => {
    const guard = guardOf(withSecret)
    guard.add('a', 'one sec')
    guard.add('b', 'two three ')
    expect([guard.clearedOf('a'), guard.clearedOf('b')]).toEqual([4, 0])
    guard.endChannel('a')
    expect([guard.clearedOf('a'), guard.clearedOf('b')]).toEqual([7, 10])
  })

  test('half of a surrogate pair never leaves', () => {
    const guard = guardOf(withSecret)
    guard.add('a', 'x \ud83d')
    expect(guard.clearedOf('a')).toBe(2)
    guard.add('b', 's')
    guard.add('a', '\ude00 ')
    expect(guard.clearedOf('a')).toBe(2)
    guard.add('b', 'x ')
    expect(guard.clearedOf('a')).toBe(5)
  })
})

describe('what blocks', () => {
  test('a rule that is always true blocks at the first character', () => {
    const guard = guardOf(answerRulesOf({ formulas: [never, always] }))
    expect(guard.ended).toBeNull()
    guard.add('a', '')
    expect(guard.ended).toBeNull()
    guard.add('b', 'x')
    expect(endOf(guard)).toMatchObject({ rule: 1, channel: 'b', cut: 0 })
    expect(guard.clearedOf('b')).toBe(0)
  })

  test('a rule that is always true blocks an empty answer at its end', () => {
    const guard = guardOf(answerRulesOf({ formulas: [always] }))
    guard.end()
    expect(endOf(guard)).toEqual({ kind: 'block', rule: 0, isError: false, channel: '', cut: 0 })
  })

  test('a rule whose constant could not be evaluated says so', () => {
    const [rule] = answerRulesOf({ formulas: [always] }).rules
    const guard = guardOf({ ...needsWhole, hold: 0, rules: [{ ...rule!, isError: true }] })
    guard.add('a', 'x')
    expect(endOf(guard)).toMatchObject({ kind: 'block', isError: true })
  })

  test('the parts of a rule may be true in different channels', () => {
    const both: AnswerFormula = { kind: 'and', parts: [secret, { kind: 'literal', literal: 1 }] }
    const guard = guardOf(answerRulesOf({ literals: ['secret', 'key'], formulas: [both] }))
    guard.add('a', 'a secret, ')
    guard.add('b', 'and its key. ')
    expect(endOf(guard)).toMatchObject({ rule: 0, channel: 'b', cut: 8 })
    expect([guard.clearedOf('a'), guard.clearedOf('b')]).toEqual([10, 8])
  })

  test('a size is reached by the characters of all channels together', () => {
    const guard = guardOf(answerRulesOf({ formulas: [{ kind: 'size', atLeast: 6 }] }))
    guard.add('a', 'a 😀 ')
    guard.add('b', 'b ')
    expect(endOf(guard)).toMatchObject({ channel: 'b', cut: 1 })
  })

  test('after a block nothing more is read', () => {
    const guard = guardOf(withSecret)
    guard.add('a', 'secret stays ')
    const { ended } = guard
    guard.add('a', 'secret')
    guard.add('b', 'x ')
    guard.endChannel('c')
    guard.end()
    expect(guard.ended).toBe(ended)
    expect([guard.clearedOf('a'), guard.clearedOf('b')]).toEqual([0, 0])
  })
})

describe('rules that need the whole answer', () => {
  const matches = (isMatch: boolean) => async () => [{ index: 0, isMatch, isError: false }]

  test('nothing leaves before their verdict, then everything', async () => {
    const onChange = vi.fn<() => void>()
    const guard = guardOf(needsWhole, { evaluateAtEnd: matches(false), onChange })
    guard.add('a', 'one ')
    guard.add('b', 'two ')
    guard.endChannel('a')
    expect([guard.clearedOf('a'), guard.clearedOf('b'), guard.isWaiting]).toEqual([0, 0, false])
    guard.end()
    expect([guard.clearedOf('a'), guard.clearedOf('b'), guard.isWaiting]).toEqual([0, 0, true])
    await setImmediate()
    expect([guard.clearedOf('a'), guard.clearedOf('b'), guard.isWaiting]).toEqual([4, 4, false])
    expect(onChange).toHaveBeenCalledOnce()
    expect(guard.heldMost).toBe(8)
  })

  test('a match cuts at the start', async () => {
    const guard = guardOf(needsWhole, { evaluateAtEnd: matches(true) })
    guard.add('a', 'one ')
    guard.end()
    await setImmediate()
    expect(endOf(guard)).toEqual({ kind: 'block', rule: 0, isError: false, channel: 'a', cut: 0 })
    expect(guard.isWaiting).toBe(false)
  })

  test('which comes after the verdicts on all windows, because its rules may read their scores', async () => {
    const verdict = Promise.withResolvers<readonly number[]>()
    const evaluateAtEnd = vi.fn<GuardOptions['evaluateAtEnd']>(async () => [])
    const rules = answerRulesOf({ formulas: [null, { kind: 'score', atom: 0 }] })
    const guard = guardOf(rules, {
      scorers: oneScorer(scoreEach(() => verdict.promise)),
      evaluateAtEnd,
    })
    guard.add('a', 'some words')
    guard.end()
    await setImmediate()
    expect(evaluateAtEnd).not.toHaveBeenCalled()
    verdict.resolve([])
    await setImmediate()
    expect(evaluateAtEnd).toHaveBeenCalledTimes(1)
    expect([guard.clearedOf('a'), guard.ended, guard.isWaiting]).toEqual([10, null, false])
  })

  test('rules that cannot be evaluated at all let nothing pass', async () => {
    const onChange = vi.fn<() => void>()
    const evaluateAtEnd = () => Promise.reject(new Error('too long'))
    const guard = guardOf(needsWhole, { evaluateAtEnd, onChange })
    guard.add('a', 'one ')
    guard.end()
    await setImmediate()
    expect(endOf(guard)).toEqual(unavailable)
    expect([guard.clearedOf('a'), guard.isWaiting]).toEqual([0, false])
    expect(onChange).toHaveBeenCalledOnce()
  })

  test('a verdict for an answer that nobody waits for changes nothing', async () => {
    const onChange = vi.fn<() => void>()
    const guard = guardOf(needsWhole, { evaluateAtEnd: matches(false), onChange })
    guard.add('a', 'one ')
    guard.end()
    guard.stop()
    await setImmediate()
    expect(guard.clearedOf('a')).toBe(0)
    expect(onChange).not.toHaveBeenCalled()
  })

  test('more than a megabyte is not held', () => {
    const guard = guardOf(needsWhole)
    guard.add('a', 'x'.repeat(1024 * 1024))
    expect(guard.ended).toBeNull()
    guard.add('b', 'x')
    expect(endOf(guard)).toEqual(beyondLimits)
  })
})

describe('limits', () => {
  test('more than 64 KB that cannot be decided end the answer', () => {
    const guard = guardOf(withSecret)
    guard.add('a', 's')
    guard.add('b', 'x'.repeat(65_535))
    expect([guard.ended, guard.heldMost]).toEqual([null, 65_536])
    guard.add('b', 'x')
    expect(endOf(guard)).toEqual(beyondLimits)
    expect(guard.clearedOf('b')).toBe(0)
  })

  test.each([
    ['white space', ' ', 'x'],
    ['line ends', '\n', 'x'],
    ['invisible characters', '\u200b', 'x'],
    ['invisible characters at the beginning', '\u200b', ''],
  ])('a run of %s does not end it, however it comes', (_, character, before) => {
    for (const rules of [withSecret, withPattern]) {
      for (const length of [1, 1000, 100_000]) {
        const guard = guardOf(rules)
        guard.add('a', before)
        for (let at = 0; at < 100_000; at += length) guard.add('a', character.repeat(length))
        expect(guard.ended).toBeNull()
        guard.endChannel('a')
        expect(heldOf(guard, 'a')).toBe(0)
      }
    }
  })

  test('a long text that comes at once is not held', () => {
    const guard = guardOf(withPattern)
    guard.add('a', 'words and words '.repeat(10_000))
    expect(guard.ended).toBeNull()
    expect(heldOf(guard, 'a')).toBe(9)
  })

  test('an answer over 4 million characters is not judged', () => {
    const guard = guardOf(withSecret)
    for (let part = 0; part < 4; part++) guard.add('a', 'words '.repeat(2 ** 20).slice(0, 2 ** 20))
    expect(guard.ended).toBeNull()
    guard.add('b', 'x')
    expect(endOf(guard)).toEqual(beyondLimits)
  })

  test('256 channels may grow at once, and many more one after another', () => {
    const guard = guardOf(withSecret)
    for (let channel = 0; channel < 1000; channel++) {
      guard.add(`ended ${channel}`, 'x')
      guard.endChannel(`ended ${channel}`)
    }
    for (let channel = 0; channel < 256; channel++) guard.add(`${channel}`, 'x ')
    expect(guard.ended).toBeNull()
    guard.add('one more', 'x ')
    expect(endOf(guard)).toEqual(beyondLimits)
  })

  test('a channel that has ended gets no more text', () => {
    const guard = guardOf(withSecret)
    guard.add('a', 'sec')
    guard.endChannel('a')
    guard.add('a', 'ret')
    expect(endOf(guard)).toEqual(unavailable)
    expect(guard.clearedOf('a')).toBe(3)
  })

  test('an answer that is over gets no more channels', () => {
    const guard = guardOf(withSecret)
    guard.end()
    guard.add('a', 'x')
    expect(endOf(guard)).toEqual(unavailable)
  })
})

describe('whole texts', () => {
  test('an equal one adds nothing, a continuation is what it adds, another one is refused', () => {
    const guard = guardOf(withSecret)
    expect(guard.restOf('a', 'a sec')).toBe('a sec')
    guard.add('a', 'a sec')
    expect(guard.restOf('a', 'a sec')).toBe('')
    expect(guard.restOf('a', 'a se')).toBeNull()
    expect(guard.restOf('a', 'b sec and more')).toBeNull()
    expect(guard.restOf('a', 'a secret ')).toBe('ret ')
  })

  test('one that differs in white space around it is equal', () => {
    const guard = guardOf(withSecret)
    guard.add('a', '\n a word and more \n')
    expect(guard.restOf('a', 'a word and more')).toBe('')
    expect(guard.restOf('a', '  a word and more\t')).toBe('')
    expect(guard.restOf('a', 'a word  and more')).toBeNull()
    expect(guard.restOf('a', 'word and more')).toBeNull()
    expect(guard.restOf('a', '')).toBeNull()
    guard.endChannel('a')
    expect(guard.restOf('a', '\n a word and more \n\n')).toBe('')
    expect(guard.restOf('a', '\n a word and more \n.')).toBeNull()
  })

  test('a channel that has ended only takes an equal one', () => {
    const guard = guardOf(withSecret)
    guard.add('a', 'fine')
    guard.endChannel('a')
    expect(guard.restOf('a', 'fine')).toBe('')
    expect(guard.restOf('a', 'fine or not')).toBeNull()
    guard.end()
    expect(guard.restOf('a', 'fine')).toBe('')
    expect(guard.ended).toBeNull()
    expect(guard.clearedOf('a')).toBe(4)
  })

  test('after a block nothing is compared', () => {
    const guard = guardOf(withSecret)
    guard.add('a', 'secret stays ')
    expect(guard.restOf('a', 'something else')).toBe('')
  })
})
