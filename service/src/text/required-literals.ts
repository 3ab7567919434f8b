import type { PatternNode } from './pattern-tree.ts'

/** Of each of these groups, at least one text is in every match of a pattern. Without groups nothing is known. */
export type RequiredLiterals = readonly (readonly string[])[]

const shortestWorthwhile = 2
const mostAlternatives = 32
const mostGroups = 4

/** How texts and literals are compared: without regard to case, so that one pass serves all patterns. */
export function foldCase(text: string): string {
  // The long s is the one character that matches an ASCII letter and is not lower-cased to it.
  return text.toLowerCase().replaceAll('\u017f', 's')
}

/** What a text must contain, after `foldCase`, for the pattern to have a chance. */
export function requiredLiterals(node: PatternNode): RequiredLiterals {
  switch (node.kind) {
    case 'sequence':
      return ofSequence(node.parts)
    case 'choice':
      return ofChoice(node.parts)
    case 'repeat':
      return node.least > 0 ? requiredLiterals(node.part) : []
    default:
      return []
  }
}

/** Its runs of characters, and what its parts require. */
function ofSequence(parts: readonly PatternNode[]): RequiredLiterals {
  const groups: (readonly string[])[] = []
  let run = ''
  const endRun = () => {
    if (run.length >= shortestWorthwhile) groups.push([run])
    run = ''
  }
  for (const part of parts) {
    const character = part.kind === 'character' ? foldedCharacter(part.text) : ''
    run += character
    // A condition such as \b takes no characters: the run goes on behind it.
    if (character === '' && part.kind !== 'empty') endRun()
    groups.push(...requiredLiterals(part))
  }
  endRun()
  return groups.toSorted((a, b) => shortest(b) - shortest(a)).slice(0, mostGroups)
}

/** One group of its alternatives, made of the best group of each. */
function ofChoice(parts: readonly PatternNode[]): RequiredLiterals {
  const all = parts.map(requiredLiterals)
  if (all.length === 1) return all[0] ?? []
  if (all.some((groups) => groups.length === 0)) return []
  const alternatives = all.flatMap(([best = []]) => best)
  return alternatives.length > mostAlternatives ? [] : [alternatives]
}

/** Its form after `foldCase`, or '' for letters outside of ASCII that have two cases: their rules are too many. */
function foldedCharacter(character: string): string {
  if (character < '\x80') return character.toLowerCase()
  const hasOneCase = character.toLowerCase() === character && character.toUpperCase() === character
  return hasOneCase ? character : ''
}

const shortest = (literals: readonly string[]) => Math.min(...literals.map(({ length }) => length))
