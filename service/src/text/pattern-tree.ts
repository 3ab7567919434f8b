import { normalise } from './normalise.ts'
import { PatternProblem, readClass, readEscape } from './pattern-characters.ts'
import type { CharacterNode, PatternReader } from './pattern-characters.ts'

/** What a pattern consists of, as far as the width of its matches and the text in them are concerned. */
export type PatternNode =
  | CharacterNode
  | { kind: 'sequence' | 'choice'; parts: readonly PatternNode[] }
  | { kind: 'repeat'; part: PatternNode; least: number; most: number }

const longestPattern = 512
const mostRepetitions = 1000

/** Parses a pattern in RE2 syntax; throws a `PatternProblem` for what RE2 refuses or this parser does not understand. */
export function readPatternTree(pattern: string): PatternNode {
  if (pattern.length > longestPattern) {
    throw new PatternProblem(
      `the pattern is longer than ${longestPattern} characters`,
      longestPattern,
    )
  }
  const lone = /\p{Surrogate}/u.exec(pattern)
  if (lone) throw new PatternProblem('half of a surrogate pair', lone.index)
  const reader: PatternReader = { pattern, at: 0, isCaseless: false, groupNames: new Set() }
  const tree = readChoice(reader)
  if (reader.at < pattern.length) throw new PatternProblem('unmatched )', reader.at)
  const repetitions = countRepetitions(tree)
  if (repetitions > mostRepetitions) {
    throw new PatternProblem(`repetitions multiply to more than ${mostRepetitions}`, 0)
  }
  return tree
}

function readChoice(reader: PatternReader): PatternNode {
  const parts = [readSequence(reader)]
  while (reader.pattern[reader.at] === '|') {
    reader.at++
    parts.push(readSequence(reader))
  }
  return { kind: 'choice', parts }
}

function readSequence(reader: PatternReader): PatternNode {
  const parts: PatternNode[] = []
  while (reader.at < reader.pattern.length && !'|)'.includes(reader.pattern.charAt(reader.at))) {
    const start = reader.at
    const part = readAtom(reader)
    const range = readRepetition(reader)
    if (range && !part) throw new PatternProblem('nothing to repeat', start)
    if (range && readRepetition(reader))
      throw new PatternProblem('repetition of a repetition', start)
    if (part) parts.push(range ? { kind: 'repeat', part, ...range } : part)
  }
  return { kind: 'sequence', parts }
}

/** One character, class, group or condition; null for a group that only sets flags. */
function readAtom(reader: PatternReader): PatternNode | null {
  const start = reader.at
  const character = String.fromCodePoint(reader.pattern.codePointAt(start) ?? 0)
  switch (character) {
    case '(':
      return readGroup(reader)
    case '[':
      return readClass(reader)
    case '\\':
      return requireVisible(readEscape(reader), start)
    default:
  }
  if ('*+?'.includes(character)) throw new PatternProblem('nothing to repeat', start)
  reader.at += character.length
  switch (character) {
    case '^':
      return { kind: 'empty' }
    case '$':
      return { kind: 'end' }
    case '.':
      return { kind: 'class', units: 2, source: character }
    default:
      return requireVisible(
        { kind: 'character', text: character, isCaseless: reader.isCaseless },
        start,
      )
  }
}

/** Texts are searched in their normal form. A character that it never has would make a pattern that matches nothing. */
function requireVisible(node: CharacterNode, start: number): CharacterNode {
  if (node.kind !== 'character') return node
  const seen = normalise(node.text).text
  if (node.text === '\b') {
    throw new PatternProblem('this is a backspace; a word boundary is written \\\\b', start)
  }
  if (seen === node.text) return node
  const code = node.text.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')
  const advice = seen === '' ? 'is removed from texts' : `is "${seen}" in texts; write that instead`
  throw new PatternProblem(`the character U+${code} ${advice}`, start)
}

/** `(...)`, `(?:...)`, `(?P<name>...)`, `(?<name>...)`, `(?i:...)`, or `(?i)`, which changes the flags from here on. */
function readGroup(reader: PatternReader): PatternNode | null {
  const start = reader.at
  const rest = reader.pattern.slice(start)
  if (/^\(\?<?[=!]/.test(rest)) throw new PatternProblem('look-around is not supported', start)
  if (rest.startsWith('(?P=')) throw new PatternProblem('back-references are not supported', start)
  const [opening] = /^\((?:\?(?:P?<\w+>|[imsU]*(?:-[imsU]+)?[:)]))?/.exec(rest) ?? ['']
  if (opening === '(' && rest.startsWith('(?')) {
    throw new PatternProblem('this kind of group is not supported', start)
  }
  reader.at += opening.length
  takeGroupName(reader, opening, start)
  const outerIsCaseless = reader.isCaseless
  setFlags(reader, opening)
  if (opening.endsWith(')')) return null
  const tree = readChoice(reader)
  if (reader.pattern[reader.at] !== ')') throw new PatternProblem('missing )', start)
  reader.at++
  reader.isCaseless = outerIsCaseless
  return tree
}

function takeGroupName(reader: PatternReader, opening: string, start: number): void {
  const name = /<(\w+)>/.exec(opening)?.[1]
  if (name === undefined) return
  if (reader.groupNames.has(name)) throw new PatternProblem('two groups have the same name', start)
  reader.groupNames.add(name)
}

function setFlags(reader: PatternReader, opening: string): void {
  if (opening.includes('<')) return
  const [set = '', cleared = ''] = opening.split('-')
  if (set.includes('i')) reader.isCaseless = true
  if (cleared.includes('i')) reader.isCaseless = false
}

/** What stands after an atom: `*`, `+`, `?`, `{2}`, `{2,}`, `{2,5}`, each also with `?`; null when there is none. */
function readRepetition(reader: PatternReader): { least: number; most: number } | null {
  const found = /^(?:([*+?])|\{(\d+)(,)?(\d+)?\})\??/.exec(reader.pattern.slice(reader.at))
  if (!found || (found[4] !== undefined && found[3] === undefined)) return null
  const start = reader.at
  reader.at += found[0].length
  if (found[1] === '*') return { least: 0, most: Infinity }
  if (found[1] === '+') return { least: 1, most: Infinity }
  if (found[1] === '?') return { least: 0, most: 1 }
  const least = Number(found[2])
  const most = found[3] === undefined ? least : Number(found[4] ?? Infinity)
  if (least > mostRepetitions || (most !== Infinity && most > mostRepetitions)) {
    throw new PatternProblem(`more than ${mostRepetitions} repetitions`, start)
  }
  if (most < least) throw new PatternProblem('the largest count is below the smallest', start)
  return { least, most }
}

/** How often the most repeated part stands in the pattern when all counts are written out. */
function countRepetitions(node: PatternNode): number {
  if (node.kind === 'repeat') {
    const times = node.most === Infinity ? node.least : node.most
    return Math.max(times, 1) * countRepetitions(node.part)
  }
  if (node.kind === 'sequence' || node.kind === 'choice') {
    return Math.max(1, ...node.parts.map(countRepetitions))
  }
  return 1
}
