import type { PatternEngine } from './pattern-set.ts'
import { loadRe2 } from './re2-engine.ts'
import { re2jsEngine } from './re2js-engine.ts'

export type { CompiledPattern, PatternEngine, PatternSet } from './pattern-set.ts'

/** The native engine where it is installed, otherwise the one in JavaScript. */
export function loadPatternEngine(): PatternEngine {
  return loadRe2() ?? re2jsEngine
}
