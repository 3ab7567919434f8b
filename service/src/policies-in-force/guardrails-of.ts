import type { Guardrail } from '#moderation/guardrails/guardrail.ts'
import { ApiError } from '#platform/api-error.ts'

import type { Snapshot } from './snapshot.ts'

const none: readonly Guardrail[] = []

/**
 * The organization's guardrails that are asked about a call, the oldest first; `projectId` is null for calls that belong to no
 * project. Throws a 503 if an enforcing one of them cannot be asked.
 */
export function guardrailsOf(
  { guardrails }: Pick<Snapshot, 'guardrails'>,
  projectId: string | null,
): readonly Guardrail[] {
  if (guardrails.length === 0) return none
  const inScope = guardrails.filter(
    ({ projectIds }) =>
      projectIds === null || (projectId !== null && projectIds.includes(projectId)),
  )
  const broken = inScope.find(({ mode, asked }) => mode === 'enforcing' && asked === null)
  if (broken) throw cannotAsk(broken.name)
  return inScope.flatMap(({ asked }) => asked ?? [])
}

const cannotAsk = (name: string) =>
  new ApiError(
    'policy_evaluation_unavailable',
    `The guardrail '${name}' cannot be asked by this process, so the request is refused.`,
  )
