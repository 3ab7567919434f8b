import { readPatternTree } from './pattern-tree.ts'
import type { PatternNode } from './pattern-tree.ts'

const probeLength = 8 * 1024

/** The same numbers every time, so that a pattern is not refused one day and accepted on another. */
function makeRandom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return (state >>> 16) % below
  }
}

function makeRandomAscii(seed: number): string {
  const random = makeRandom(seed)
  return Array.from({ length: probeLength }, () => String.fromCharCode(32 + random(95))).join('')
}

const repeated = (part: string) => part.repeat(probeLength / part.length)

/**
 * Texts that are hard for different patterns, one for each of three tries and one before: an automaton remembers the
 * states that a text needed, so the same text again would cost nothing.
 */
export const commonProbes: readonly (readonly string[])[] = [
  [1, 2, 3, 4].map(makeRandomAscii),
  ['é1a', '1aé', 'aé1', 'é1a'].map(repeated),
  ['é', 'éa', 'aé', 'a'].map(repeated),
  Array.from({ length: 4 }, () => repeated(' ')),
]

/**
 * Texts that consist of the pattern's own words: each of them may begin a match, and an automaton has to remember
 * where all of them were. They are slow to read, so there are only two tries and one before.
 */
export function makeOwnWordsProbes(pattern: string): string[][] {
  const { all, opening } = literalsIn(readPatternTree(pattern))
  if (all.length === 0) return []
  // The words that complete a match come last: before them the engine finds nothing and has to read on.
  return [opening, all].map((words) =>
    [1, 2, 3].map((seed) => mixWords(seed, words, all.join(' '))),
  )
}

const shortWords = ['lo', 'a', 'of']

function mixWords(seed: number, words: readonly string[], ending: string): string {
  const random = makeRandom(seed)
  const parts: string[] = []
  for (let length = ending.length; length < probeLength;) {
    // A quarter of the words are the pattern's own, however many it has.
    const some = random(4) === 0 ? words : shortWords
    const word = some[random(some.length)] ?? ''
    parts.push(word)
    length += word.length + 1
  }
  return [...parts, ending].join(' ')
}

/** The texts that a pattern spells out: all of them, and those that do not complete a match. */
type Literals = { all: readonly string[]; opening: readonly string[] }

function literalsIn(node: PatternNode): Literals {
  switch (node.kind) {
    case 'character':
      return { all: [node.text], opening: [node.text] }
    case 'sequence':
      return literalsInSequence(node.parts)
    case 'choice': {
      const parts = node.parts.map(literalsIn)
      return {
        all: parts.flatMap(({ all }) => all),
        opening: parts.flatMap(({ opening }) => opening),
      }
    }
    case 'repeat':
      return literalsIn(node.part)
    default:
      return { all: [], opening: [] }
  }
}

function literalsInSequence(parts: readonly PatternNode[]): Literals {
  const pieces: Literals[] = []
  let run = ''
  const endRun = () => {
    if (run !== '') pieces.push({ all: [run], opening: [run] })
    run = ''
  }
  for (const part of parts) {
    if (part.kind === 'character') run += part.text
    // A condition such as \b takes no characters: the run goes on behind it.
    if (part.kind === 'character' || part.kind === 'empty') continue
    endRun()
    const piece = literalsIn(part)
    if (piece.all.length > 0) pieces.push(piece)
  }
  endRun()
  const [only, ...others] = pieces
  const all = pieces.flatMap((piece) => piece.all)
  if (others.length === 0) return { all, opening: only?.opening ?? [] }
  return { all, opening: pieces.slice(0, -1).flatMap((piece) => piece.all) }
}
