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

/** Some characters of a class, given as a pattern writes it; none where nearly every character is in it. */
export type SampleClass = (source: string) => readonly string[]

/**
 * Texts that consist of the pattern's own words: each of them may begin a match, and an automaton has to remember
 * where all of them were. They are slow to read, so there are only two tries and one before.
 */
export function makeOwnWordsProbes(
  pattern: string,
  sampleClass: SampleClass = () => [],
): string[][] {
  const tree = readPatternTree(pattern)
  // Two words for each place that takes one of several characters.
  const [one, other] = [0, 1].map((number) =>
    literalsIn(tree, (source) => sampleClass(source).at(-number) ?? ''),
  )
  const all = [...new Set([...(one?.all ?? []), ...(other?.all ?? [])])]
  const opening = [...new Set([...(one?.opening ?? []), ...(other?.opening ?? [])])]
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
  // A quarter of the words are the pattern's own, however many it has. Single characters stand closer.
  const isShort = words.every((word) => word.length <= 2)
  const [oneIn, space] = isShort ? [2, ''] : [4, ' ']
  for (let length = ending.length; length < probeLength;) {
    const some = random(oneIn) === 0 ? words : shortWords
    const word = some[random(some.length)] ?? ''
    parts.push(word)
    length += word.length + space.length
  }
  return `${parts.join(space)} ${ending}`
}

/** The texts that a pattern spells out: all of them, and those that do not complete a match. */
type Literals = { all: readonly string[]; opening: readonly string[] }
/** A character for a class, or none. */
type SpellClass = (source: string) => string

function literalsIn(node: PatternNode, spell: SpellClass): Literals {
  switch (node.kind) {
    case 'character':
    case 'class': {
      const text = spellNode(node, spell)
      return text === '' ? { all: [], opening: [] } : { all: [text], opening: [text] }
    }
    case 'sequence':
      return literalsInSequence(node.parts, spell)
    case 'choice': {
      const parts = node.parts.map((part) => literalsIn(part, spell))
      return {
        all: parts.flatMap(({ all }) => all),
        opening: parts.flatMap(({ opening }) => opening),
      }
    }
    case 'repeat':
      return literalsIn(node.part, spell)
    default:
      return { all: [], opening: [] }
  }
}

function spellNode(node: PatternNode, spell: SpellClass): string {
  if (node.kind === 'character') return node.text
  return node.kind === 'class' ? spell(node.source) : ''
}

function literalsInSequence(parts: readonly PatternNode[], spell: SpellClass): Literals {
  const pieces: Literals[] = []
  let run = ''
  const endRun = () => {
    if (run !== '') pieces.push({ all: [run], opening: [run] })
    run = ''
  }
  for (const part of parts) {
    const text = spellNode(part, spell)
    run += text
    // A condition such as \b takes no characters: the run goes on behind it.
    if (text !== '' || part.kind === 'empty') continue
    endRun()
    const piece = literalsIn(part, spell)
    if (piece.all.length > 0) pieces.push(piece)
  }
  endRun()
  const [only, ...others] = pieces
  const all = pieces.flatMap((piece) => piece.all)
  if (others.length === 0) return { all, opening: only?.opening ?? [] }
  return { all, opening: pieces.slice(0, -1).flatMap((piece) => piece.all) }
}
