import { setImmediate as nextTurn } from 'node:timers/promises'

import { evaluatePolicy, type PolicyTrialResults } from '@gatehouse/contract/policy-evaluation'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import type { Db } from '#platform/database.ts'
import { within } from '#platform/deadline.ts'
import { startBackgroundWork } from '#platform/steps/background-work.ts'
import { compileEvaluableInSteps } from '#policies/compile.ts'
import type { PolicyDeps } from '#policies/deps.ts'
import { requirePolicy } from '#policies/find-policy.ts'
import { contentOf, type PolicyKey } from '#policies/policy.ts'
import {
  evaluationTooSlow,
  lacksJudge,
  policyNotEvaluable,
  versionNotFound,
} from '#policies/refusals.ts'
import { findVersion } from '#policies/versions/version-store.ts'

import { warningsFor } from './rule-warnings.ts'
import { createTrial, type TrialsDeps } from './trial.ts'

type Deps = TrialsDeps & Pick<PolicyDeps, 'db' | 'hasJudge' | 'isJudgeScripted'>

const trialMaxMs = 10_000

/** Texts are tried one after the other, with other calls in between. */
export function serveEvaluatePolicy(app: FastifyInstance, deps: Deps) {
  const { db, engine, hasJudge } = deps
  bind(app, evaluatePolicy, async ({ params, body }, { principal }) => {
    const { organizationId } = principal
    const policy = await requirePolicy(db, organizationId, params.policy_id)
    const key = { organizationId, policyId: policy.id }
    const content =
      body.version === undefined ? policy : await requireVersion(db, key, body.version)
    const rule = await startBackgroundWork().run(compileEvaluableInSteps(content.rule, engine))
    if ('problem' in rule) throw policyNotEvaluable(nameOf(body.version), rule.problem)
    if (rule.needs.judge && !hasJudge()) {
      throw policyNotEvaluable(nameOf(body.version), lacksJudge)
    }
    return within(trialMaxMs, evaluationTooSlow, async (signal) => {
      const tried = { ...contentOf(content), policyId: policy.id, version: body.version ?? 0 }
      const ofCaller = { ...deps, scoreText: deps.scoreTextFor(principal) }
      const trial = await startBackgroundWork(signal).run(
        createTrial(tried, rule, ofCaller, { owner: organizationId, signal }),
      )
      const done: PolicyTrialResults['results'] = []
      for (const each of body.texts) {
        signal.throwIfAborted()
        done.push(await trial.explain(each))
        await nextTurn()
      }
      return { results: done, holdback: trial.holdback, ...warningsFor(content.rule, deps) }
    })
  })
}

async function requireVersion(db: Db, key: PolicyKey, number: number) {
  const version = await findVersion(db, key, number)
  if (!version) throw versionNotFound()
  return version
}

const nameOf = (version: number | undefined) =>
  version === undefined ? 'the draft' : `version ${version}`
