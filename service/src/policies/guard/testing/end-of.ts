import type { AnswerGuard } from '#policies/guard/answer-guard.ts'

/** How a guard has ended an answer, with the number of the rule that did it. */
export function endOf({ ended }: Pick<AnswerGuard, 'ended'>) {
  if (ended?.kind !== 'block') return ended
  const { kind, ending, isError, channel, cut } = ended
  return { kind, rule: ending.index, isError, channel, cut }
}
