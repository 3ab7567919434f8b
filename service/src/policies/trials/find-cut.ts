import { type Asker, runInTurns, type Steps } from '#platform/steps/steps.ts'
import { AnswerGuard } from '#policies/guard/answer-guard.ts'
import type { WindowScorer } from '#policies/guard/window-queue.ts'
import type { AnswerRules, WindowAtom } from '#policies/rules/answer-rules.ts'
import { sliceLength } from '#policies/rules/searched-parts.ts'
import { judgeGrid, type WindowGrid } from '#text/windows/window-grid.ts'

type Trial = {
  /** In which a rule matches the text. */
  rules: AnswerRules
  /** Where in the text an atom becomes true; Infinity: nowhere. */
  startOf(atom: WindowAtom): number
  gridOf(category: string): WindowGrid
  asker: Asker
}

/**
 * Where the first rule that matches a complete answer would cut it, in characters of its normalised text. A rule that needs the
 * whole answer lets nothing of it pass.
 */
export async function findCut(text: string, trial: Trial): Promise<number> {
  const { rules, asker } = trial
  const changed = { next: Promise.withResolvers<void>() }
  const guard = new AnswerGuard(rules, {
    scorers: knownScorers(trial),
    owner: asker.owner,
    now: () => performance.now(),
    onChange() {
      changed.next.resolve()
      changed.next = Promise.withResolvers()
    },
    evaluateAtEnd: async () =>
      rules.rules.map(({ index }) => ({ index, isMatch: true, isError: false })),
  })
  try {
    await runInTurns(show(text, guard), asker)
    while (guard.isWaiting) await changed.next.promise
    return guard.ended?.kind === 'block' ? guard.ended.cut : 0
  } finally {
    guard.stop()
  }
}

function* show(text: string, guard: AnswerGuard): Steps<void> {
  for (let at = 0; at < text.length && !guard.ended; at += sliceLength) {
    guard.add('text', text.slice(at, at + sliceLength))
    yield
  }
  guard.end()
}

/** The scores are known already. */
const knownScorers = ({ rules: { scores }, startOf, gridOf }: Trial): WindowScorer[] => {
  const atoms = scores.map((atom, number) => ({ number, start: startOf(atom), atom }))
  const byGrid = Map.groupBy(atoms, ({ atom }) =>
    atom.kind === 'score' ? gridOf(atom.category) : judgeGrid,
  )
  return Array.from(byGrid, ([grid, some]) => ({
    grid,
    findKnown: ({ start, end }) =>
      some.filter((each) => each.start >= start && each.start < end).map(({ number }) => number),
    scoreWindows: () => Promise.reject(new Error('Every window is known.')),
  }))
}
