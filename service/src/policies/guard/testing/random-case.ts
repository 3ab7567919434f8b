import type { AnswerFormula, AnswerRule } from '#policies/rules/answer-rules.ts'
import type { EntityAtom } from '#policies/rules/formula.ts'
import { createRandom } from '#testing/fault-proxy.ts'
import { LiteralSet } from '#text/literal-set.ts'

import type { Arrival, TestRules } from './enforce-whole.ts'
import { createV8Patterns } from './v8-patterns.ts'

export type Random = {
  /** From 0 up to, and without, `end`. */
  below(end: number): number
  pick<Item>(items: readonly Item[]): Item
  isOneIn(count: number): boolean
}

/** The same choices for the same seed. */
export function createChoices(seed: number): Random {
  const random = createRandom(seed)
  const below = (end: number) => Math.floor(random() * end)
  return {
    below,
    pick: (items) => items[below(items.length)]!,
    isOneIn: (count) => below(count) === 0,
  }
}

/** With the most units that a match can span. */
const patterns = [
  { source: 'ab', width: 2 },
  { source: '\\bab\\b', width: 2 },
  { source: 'ab{0,5}c|b', width: 7 },
  { source: 'a.{0,6}c', width: 14 },
  { source: '(?:a|b){3}c?', width: 4 },
  { source: '\\b[a-c]{2,4}\\b', width: 4 },
  { source: 'c\\s{1,3}a', width: 5 },
  { source: 'cab|abc|bca', width: 3 },
  { source: '😀a', width: 3 },
  { source: '(?i)abc', width: 3 },
  { source: 'b(?:ab){2,3}', width: 7 },
  { source: '^a{2}', width: 2 },
  { source: '^.{2}c', width: 5 },
  { source: 'é', width: 1 },
  { source: 'fi', width: 2 },
  { source: '\\Bc\\B', width: 1 },
  { source: '[^\\s].?😀', width: 6 },
  { source: ' \\bd{0,3}\\b', width: 4 },
]
/** They match the empty text, so that nearly every answer is blocked: seldom used. */
const emptyPatterns = [
  { source: 'x{0,2}', width: 2 },
  { source: '\\b', width: 0 },
  { source: '\\B', width: 0 },
]
/** What rules count, and the pieces of it in the last alphabet. */
const entities: readonly EntityAtom[] = [
  { kind: 'entity', entity: 'EMAIL', atLeast: 1 },
  { kind: 'entity', entity: 'EMAIL', atLeast: 2 },
  { kind: 'entity', entity: 'CARD', atLeast: 1 },
  { kind: 'entity', entity: 'SECRET', atLeast: 1 },
]
const literals = ['ab', 'abc', 'bca', 'a b', 'é', 'b', 'cabca', 'fi', '😀', 'aaaa', 'c d', '😀😀a']
const alphabets = [
  ['a', 'b', 'c', ' ', 'd'],
  ['a', 'b', 'c', ' ', 'x', 'y', 'z', '\n', '😀', 'C', '\u00a0', '  '],
  ['x', 'y', ' ', 'a', 'q', 'r', 's', 't', 'b'],
  ['a', 'b', 'c', 'e', '\u0301', '\u200b', '\u200d', 'ﬁ', 'ａ', '\u202e', ' '],
  ['😀', 'a', '\ud83d', '\ude00', 'c', '\ufe0f', ' ', '𝐚'],
  [
    'a@b.com',
    '@',
    'a',
    'b.c',
    '.com',
    ' ',
    '4111 1111 1111 1111',
    '1',
    '-',
    'sk-',
    '0123456789',
    'ＡB',
  ],
  ['가', 'ᄀ', 'ᅡ', 'ᆨ', 'a', 'b', 'c', '\u0323', '\u0301', 'é', '\r\n'],
]

export type Case = { test: TestRules; arrivals: readonly Arrival[]; isOneAfterAnother: boolean }

/** `createPatterns` may be the set of an engine instead of the quick one. */
export function createCase(random: Random, createPatterns = createV8Patterns): Case {
  const texts = Array.from({ length: 1 + random.below(3) }, () => createText(random))
  const isOneAfterAnother = random.isOneIn(2)
  const arrivals = isOneAfterAnother ? fillInTurn(texts, random) : interleave(texts, random)
  return { test: createRules(random, createPatterns), arrivals, isOneAfterAnother }
}

const escapes = [
  'a',
  'b',
  'c',
  ' ',
  '\\',
  'n',
  '\\n',
  '\\u0061',
  '\\u00',
  '62',
  '\\\\u0063',
  '\\t',
  'x',
]

/** The same, often with JSON escapes, whole and broken ones. */
export function createEscapedText(random: Random): string {
  if (!random.isOneIn(3)) return createText(random)
  const length = random.below(40)
  return Array.from({ length }, () => random.pick(escapes)).join('')
}

/** Also characters that combine, are removed, replaced or half of a pair. */
export function createText(random: Random): string {
  const alphabet = random.pick(alphabets)
  return Array.from({ length: random.below(40) }, () => random.pick(alphabet)).join('')
}

/** Some channels are ended before the next begins, the others only when the answer is over. */
function fillInTurn(texts: readonly string[], random: Random): Arrival[] {
  return texts.flatMap((text, number): Arrival[] => {
    const channel = String(number)
    const arrival = { channel, text }
    return random.isOneIn(3) ? [arrival] : [arrival, { channel, isEnd: true }]
  })
}

function interleave(texts: readonly string[], random: Random): Arrival[] {
  const rests = texts.map((text, number) => ({ channel: String(number), rest: text }))
  const arrivals: Arrival[] = []
  while (rests.length > 0) {
    const one = random.pick(rests)
    const length = 1 + random.below(8)
    arrivals.push({ channel: one.channel, text: one.rest.slice(0, length) })
    one.rest = one.rest.slice(length)
    if (one.rest !== '') continue
    if (random.isOneIn(2)) arrivals.push({ channel: one.channel, isEnd: true })
    rests.splice(rests.indexOf(one), 1)
  }
  return arrivals
}

function createRules(random: Random, createPatterns: typeof createV8Patterns): TestRules {
  const chosen = Array.from({ length: 1 + random.below(4) }, () =>
    random.isOneIn(60) ? random.pick(emptyPatterns) : random.pick(patterns),
  )
  const chosenLiterals = Array.from({ length: 1 + random.below(3) }, () => random.pick(literals))
  const counts = { pattern: chosen.length, literal: chosenLiterals.length }
  const needsWhole = random.isOneIn(20)
  const rules = Array.from({ length: 1 + random.below(3) }, (_, number): AnswerRule => {
    // A rule's number need not be its place.
    const index = number * 2 + 1
    if (random.isOneIn(8)) return { index, isEnforcing: false, formula: null }
    const formula = needsWhole && random.isOneIn(2) ? null : createFormula(random, counts, 0)
    return { index, isEnforcing: true, formula, ...(random.isOneIn(9) && { isError: true }) }
  })
  const widths = rules.flatMap(({ formula }) => (formula ? patternsOf(formula) : []))
  const patternHold = Math.max(0, ...widths.map((pattern) => chosen[pattern]!.width))
  const isFull = rules.some(({ isEnforcing, formula }) => isEnforcing && !formula)
  return {
    rules: {
      patterns: createPatterns(chosen.map(({ source }) => source)),
      patternCount: chosen.length,
      literals: literalSetOf(chosenLiterals),
      scores: [],
      entities,
      hold: isFull ? 'full' : patternHold,
      patternHold,
      rules,
    },
    literals: chosenLiterals,
    evaluateAtEnd: (all) =>
      rules.map(({ index }) => ({
        index,
        isMatch: all.join('').length % 3 === index % 3,
        isError: all.length === 2,
      })),
  }
}

function createFormula(
  random: Random,
  counts: { pattern: number; literal: number },
  depth: number,
): AnswerFormula {
  if (depth < 2 && random.isOneIn(2)) {
    const parts = Array.from({ length: 1 + random.below(3) }, () =>
      createFormula(random, counts, depth + 1),
    )
    return { kind: random.pick(['and', 'or']), parts }
  }
  if (random.isOneIn(12)) return { kind: 'constant', value: random.isOneIn(4) }
  if (random.isOneIn(6)) return { kind: 'size', atLeast: random.below(50) }
  if (random.isOneIn(5)) return { kind: 'entity', atom: random.below(entities.length) }
  if (random.isOneIn(3)) return { kind: 'literal', literal: random.below(counts.literal) }
  return { kind: 'pattern', pattern: random.below(counts.pattern) }
}

function patternsOf(formula: AnswerFormula): number[] {
  if ('parts' in formula) return formula.parts.flatMap(patternsOf)
  return formula.kind === 'pattern' ? [formula.pattern] : []
}

const literalSets = new Map<string, LiteralSet>()

function literalSetOf(texts: readonly string[]): LiteralSet {
  const key = texts.join('\0')
  const set = literalSets.get(key) ?? new LiteralSet(texts)
  literalSets.set(key, set)
  return set
}
