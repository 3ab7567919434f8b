import { setImmediate as nextTurn } from 'node:timers/promises'

import { type PolicyReplay, replayPolicy } from '@gatehouse/contract/policy-evaluation'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import type { Db } from '#platform/database.ts'
import { startBackgroundWork } from '#platform/steps/background-work.ts'
import { compileEvaluableInSteps } from '#policies/compile.ts'
import { requirePolicy } from '#policies/find-policy.ts'
import { contentOf, type Policy, type PolicyKey } from '#policies/policy.ts'
import { policyNotEvaluable } from '#policies/refusals.ts'
import type { CompiledRule } from '#policies/rules/rule-program.ts'
import { tryExamples } from '#policies/trials/require-passing-examples.ts'
import type { TrialDeps, TrialsDeps } from '#policies/trials/trial.ts'
import { findVersion } from '#policies/versions/version-store.ts'

import { createChangeCounts } from './count-changes.ts'
import { findObstacle } from './obstacle.ts'
import { createCallReader } from './recorded-call.ts'
import { readJudgedCalls, readVersionHistory } from './replay-store.ts'

type Deps = TrialsDeps & { db: Db; hasJudge(): boolean }
type DepsOfCaller = TrialDeps & { db: Db; hasJudge(): boolean }
type Draft = { policy: Policy; key: PolicyKey; rule: CompiledRule }

const replayMaxMs = 10_000

/** Says what a draft would have changed. Requests are those of the log, of which no text is kept. */
export function serveReplayPolicy(app: FastifyInstance, deps: Deps) {
  bind(app, replayPolicy, async ({ params, body }, { principal }) => {
    const { organizationId } = principal
    const { db, engine } = deps
    const policy = await requirePolicy(db, organizationId, params.policy_id)
    const key = { organizationId, policyId: policy.id }
    const rule = await startBackgroundWork().run(compileEvaluableInSteps(policy.rule, engine))
    if ('problem' in rule) throw policyNotEvaluable('the draft', rule.problem)
    const draft: Draft = { policy, key, rule }
    const { current_version } = policy
    const published = current_version === null ? null : await findVersion(db, key, current_version)
    const reason = findObstacle(policy, rule, published ?? null)
    const ofCaller = { ...deps, scoreText: deps.scoreTextFor(principal) }
    const answer = {
      object: 'organization.policy.replay' as const,
      policy_id: policy.id,
      revision: policy.revision,
    }
    return reason === null
      ? { ...answer, ...(await replay(deps, draft, body.requests)) }
      : { ...answer, ...(await explain(ofCaller, draft, reason)) }
  })
}

type Outcome = Omit<PolicyReplay, 'object' | 'policy_id' | 'revision'>

/** When time is up, the answer is about what was read until then. */
async function replay(
  { db }: Pick<Deps, 'db'>,
  draft: Draft,
  requestsMax: number,
): Promise<Outcome> {
  const untilMs = performance.now() + replayMaxMs
  const { policy, key, rule } = draft
  const versionAt = await readVersionHistory(db, key)
  const content = contentOf(policy)
  const counts = createChangeCounts({ policyId: policy.id, content, rule, versionAt })
  const readCall = createCallReader()
  let requests = 0
  let since: Date | null = null
  for await (const events of readJudgedCalls(db, key.organizationId)) {
    for (const event of events) {
      const call = requests < requestsMax ? readCall(event) : null
      if (!call) continue
      counts.add(call)
      requests++
      since = event.at
    }
    if (requests >= requestsMax || performance.now() > untilMs) break
    await nextTurn()
  }
  return {
    result: 'replayed',
    reason: null,
    requests,
    since: since && Math.floor(since.getTime() / 1000),
    projects: counts.list(),
    examples: null,
  }
}

async function explain(
  deps: DepsOfCaller,
  { policy, key, rule }: Draft,
  reason: string,
): Promise<Outcome> {
  const examples = await tryExamples(deps, key.organizationId, policy, rule)
  return { result: 'not_replayable', reason, requests: 0, since: null, projects: [], examples }
}
