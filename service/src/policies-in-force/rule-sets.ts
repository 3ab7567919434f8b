import { ApiError } from '#platform/api-error.ts'
import { BoundedMap } from '#platform/bounded-map.ts'
import { within } from '#platform/deadline.ts'
import { type BackgroundWork, startBackgroundWork } from '#platform/steps/background-work.ts'
import type { Steps } from '#platform/steps/steps.ts'
import type { CompiledPolicy } from '#policies/compile.ts'
import { thresholdOf } from '#policies/policy.ts'
import { RuleSet } from '#policies/rules/rule-set.ts'
import type { SetRule } from '#policies/rules/set-rule.ts'
import type { PatternEngine } from '#text/pattern-engine.ts'

import type { Snapshot } from './snapshot.ts'

type Direction = 'request' | 'response'

/** What judges the requests, or the answers, of one project. */
export type ProjectRules = {
  readonly set: RuleSet
  /** Enforcing policies that cannot be evaluated: they refuse what they should judge. */
  readonly unenforceable: readonly CompiledPolicy[]
  /** The ids of monitoring policies that cannot be evaluated. */
  readonly unevaluated: readonly string[]
}

type RuleSets = {
  /**
   * `projectId` is null for calls that belong to no project. A promise if the set has to be built first; calls that come
   * meanwhile wait for the same one.
   */
  for(projectId: string | null, direction: Direction): ProjectRules | Promise<ProjectRules>
  /** Builds a set as a part of the given work. */
  prepare(
    projectId: string | null,
    direction: Direction,
    work: BackgroundWork,
  ): Promise<ProjectRules>
}

/** Of one snapshot. A list that is dropped is made again when it is needed. */
const listsMax = 1000
/** How long a call waits for its set. The set is then still built, for later calls. */
const waitMaxMs = 10_000
const setsOfSnapshots = new WeakMap<Snapshot, RuleSets>()

/** The rule sets of a snapshot, made when they are first needed and kept as long as the snapshot. */
export function ruleSetsOf(snapshot: Snapshot, engine: PatternEngine): RuleSets {
  const known = setsOfSnapshots.get(snapshot)
  if (known) return known
  const made = createRuleSets(snapshot, engine)
  setsOfSnapshots.set(snapshot, made)
  return made
}

/**
 * Builds what most calls need before the first of them: the sets for projects that no policy names. Those for other
 * projects are built for the first call that needs them, because there may be a thousand.
 */
export async function prepareRuleSets(
  snapshot: Snapshot,
  engine: PatternEngine,
  work: BackgroundWork,
) {
  const sets = ruleSetsOf(snapshot, engine)
  await sets.prepare(null, 'request', work)
  await sets.prepare(null, 'response', work)
}

function createRuleSets({ policies }: Snapshot, engine: PatternEngine): RuleSets {
  if (policies.length === 0) return createEmptySets(engine)
  const named = new Set(policies.flatMap(({ content }) => content.project_ids))
  const byProject = new BoundedMap<string, ProjectRules>(listsMax)
  /** Projects to which the same policies apply share them. The key is the places of the policies. */
  const byList = new BoundedMap<string, Promise<ProjectRules>>(listsMax)

  function build(project: string | null, direction: Direction, work: BackgroundWork) {
    const places = [...policies.keys()].filter((place) =>
      appliesTo(policies[place], project, direction),
    )
    const key = places.join()
    const shared = byList.get(key)
    if (shared) return shared
    const applied = places.flatMap((place) => policies[place] ?? [])
    const made = work.run(buildRules(applied, engine))
    byList.set(key, made)
    made.catch(() => byList.delete(key)) // the work was given up
    return made
  }

  // All projects that no policy names have the same policies.
  const nameOf = (projectId: string | null) =>
    projectId !== null && named.has(projectId) ? projectId : null
  const keyOf = (project: string | null, direction: Direction) =>
    project === null ? direction : `${direction}/${project}`

  async function prepare(projectId: string | null, direction: Direction, work: BackgroundWork) {
    const project = nameOf(projectId)
    const made = await build(project, direction, work)
    byProject.set(keyOf(project, direction), made)
    return made
  }

  return {
    prepare,
    for: (projectId, direction) =>
      byProject.get(keyOf(nameOf(projectId), direction)) ??
      within(waitMaxMs, notReady, () => prepare(projectId, direction, startBackgroundWork())),
  }
}

/** Calls of organizations without policies wait for nothing. */
function createEmptySets(engine: PatternEngine): RuleSets {
  const none: ProjectRules = { set: new RuleSet([], engine), unenforceable: [], unevaluated: [] }
  return { for: () => none, prepare: async () => none }
}

const notReady = () =>
  new ApiError(
    'policy_evaluation_unavailable',
    "The policies of the request's project are still being prepared, so it is refused; retry later.",
  )

function appliesTo(
  policy: CompiledPolicy | undefined,
  projectId: string | null,
  direction: Direction,
): boolean {
  if (!policy) return false
  // Unattached policies name no projects, so they apply to none.
  const { scope, project_ids } = policy.content
  const isInScope =
    scope === 'organization' || (projectId !== null && project_ids.includes(projectId))
  return isInScope && ['both', direction].includes(policy.content.direction)
}

function* buildRules(
  policies: readonly CompiledPolicy[],
  engine: PatternEngine,
): Steps<ProjectRules> {
  const broken = policies.filter(({ rule }) => 'problem' in rule)
  try {
    const set = yield* RuleSet.buildInSteps(policies.flatMap(toSetRule), engine)
    const judgesAnswers = policies.every(({ content }) => content.direction !== 'request')
    if (judgesAnswers) yield* set.prepareAnswers()
    return { set, ...divide(broken) }
  } catch {
    // Rules that are accepted one by one can be too much together. Those that protect something refuse then.
    return { set: new RuleSet([], engine), ...divide(policies) }
  }
}

function toSetRule({ policyId, name, version, content, rule }: CompiledPolicy): SetRule[] {
  if ('problem' in rule) return []
  const { mode } = content
  return [{ policyId, policyName: name, version, mode, threshold: thresholdOf(content), rule }]
}

const divide = (broken: readonly CompiledPolicy[]) => ({
  unenforceable: broken.filter(({ content }) => content.mode === 'enforcing'),
  unevaluated: broken
    .filter(({ content }) => content.mode === 'monitoring')
    .map(({ policyId }) => policyId),
})
