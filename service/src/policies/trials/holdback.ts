import type { Atom, Formula } from '#policies/rules/formula.ts'
import type { CompiledRule } from '#policies/rules/rule-program.ts'
import { entityHold } from '#redaction/entity.ts'
import { heldMostByAny } from '#text/windows/window-grid.ts'

/**
 * The most characters of a streamed answer that the rule can hold back when it is enforced, whatever the facts of the
 * call: 'full' if it needs the whole answer, 'none' if it does not read it.
 */
export function holdbackOf({ formula, shapes }: CompiledRule): number | 'full' | 'none' {
  if (!formula) return 'full'
  const atoms = atomsOf(formula)
  if (atoms.length === 0) return 'none'
  return Math.max(
    ...atoms.map((atom) => {
      if (atom.kind === 'pattern') return shapes.get(atom.pattern)?.width ?? 0
      if (atom.kind === 'entity') return entityHold
      if (atom.kind === 'score' || atom.kind === 'judged') return heldMostByAny
      return atom.kind === 'literal' ? atom.text.length - 1 : 0
    }),
  )
}

function atomsOf(formula: Formula): Atom[] {
  if (formula.kind === 'constant') return []
  return formula.kind === 'atom' ? [formula.atom] : formula.parts.flatMap(atomsOf)
}
