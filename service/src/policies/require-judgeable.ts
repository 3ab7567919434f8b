import type { PolicyContent } from '@gatehouse/contract/policy'

import type { Tx } from '#platform/database.ts'

import { findOtherJudged, type JudgedScope } from './policy-store.ts'
import { tooManyJudged } from './refusals.ts'
import { readRule } from './rules/read-rule.ts'

/** Each call asks the judge about all of them. About a rule with a gate a request asks only where the gate is true. */
const judgedMax = 20

type Judged = JudgedScope & Pick<PolicyContent, 'rule' | 'mode'>

/** Refuses an enforcing policy in plain language, without a gate, where a project would have too many of them. */
export async function requireJudgeable(
  tx: Tx,
  key: { organizationId: string; id: string },
  content: Judged,
) {
  const { rule, mode, scope } = content
  const isPlain = readRule(rule).form === 'plain'
  if (!isPlain || mode !== 'enforcing' || scope === 'unattached') return
  const count = countMost(content, await findOtherJudged(tx, key))
  if (count > judgedMax) throw tooManyJudged(count, judgedMax)
}

/** The most policies in plain language that a project in the scope of this one would have for one direction, with it. */
function countMost(added: JudgedScope, others: readonly JudgedScope[]): number {
  const all = [added, ...others]
  const named = new Set(all.flatMap(({ project_ids }) => project_ids))
  const projects = added.scope === 'organization' ? [null, ...named] : added.project_ids
  const directions = (['request', 'response'] as const).filter((each) => checks(added, each))
  const counts = directions.flatMap((direction) =>
    projects.map(
      (project) => all.filter((each) => checks(each, direction) && appliesTo(each, project)).length,
    ),
  )
  return Math.max(0, ...counts)
}

const checks = ({ direction }: JudgedScope, one: 'request' | 'response') =>
  direction === 'both' || direction === one

const appliesTo = ({ scope, project_ids }: JudgedScope, project: string | null) =>
  scope === 'organization' || (project !== null && project_ids.includes(project))
