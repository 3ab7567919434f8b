import { PatternProblem } from './pattern-characters.ts'
import type { CompiledPattern, PatternEngine } from './pattern-engine.ts'
import { readPatternTree } from './pattern-tree.ts'
import type { PatternNode } from './pattern-tree.ts'

export type PatternShape = {
  /** The most UTF-16 units a match can span; Infinity when that is unbounded. */
  width: number
  /** Whether it depends on the end of the text: `$`, `\z`. */
  needsEnd: boolean
  /** If an engine has compiled it. */
  compiled?: CompiledPattern
}

export type PatternComplaint = { problem: string; offset: number }

/** Parses a pattern in RE2 syntax; returns its shape, or what is wrong with it and where. */
export function readPatternShape(pattern: string): PatternShape | PatternComplaint {
  try {
    const tree = readPatternTree(pattern)
    return { width: widthOf(tree), needsEnd: dependsOnEnd(tree) }
  } catch (error) {
    if (error instanceof PatternProblem) return { problem: error.message, offset: error.offset }
    throw error
  }
}

/** The shape of a pattern that the engine accepts too: the engine is the last judge of what is valid. */
export function checkPattern(
  engine: PatternEngine,
  pattern: string,
): PatternShape | PatternComplaint {
  const shape = readPatternShape(pattern)
  if ('problem' in shape) return shape
  try {
    return { ...shape, compiled: engine.compile(pattern) }
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error), offset: 0 }
  }
}

/**
 * Matching without regard to case keeps the width: every other form of a character of one unit has one unit, and of
 * a character of two units two.
 */
function widthOf(node: PatternNode): number {
  switch (node.kind) {
    case 'empty':
    case 'end':
      return 0
    case 'character':
      return node.text.length
    case 'class':
      return node.units
    case 'sequence':
      return node.parts.reduce((sum, part) => sum + widthOf(part), 0)
    case 'choice':
      return node.parts.reduce((most, part) => Math.max(most, widthOf(part)), 0)
    case 'repeat': {
      const width = widthOf(node.part)
      return width === 0 ? 0 : width * node.most
    }
  }
}

function dependsOnEnd(node: PatternNode): boolean {
  switch (node.kind) {
    case 'end':
      return true
    case 'sequence':
    case 'choice':
      return node.parts.some(dependsOnEnd)
    case 'repeat':
      return dependsOnEnd(node.part)
    default:
      return false
  }
}
