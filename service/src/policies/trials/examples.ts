import { createHash } from 'node:crypto'

import {
  type PolicyExample,
  readPolicyExamples,
  replacePolicyExamples,
} from '@gatehouse/contract/policy-evaluation'
import type { FastifyInstance } from 'fastify'

import { bindMutation } from '#http/bind-mutation.ts'
import { bind } from '#http/bind.ts'
import type { Db } from '#platform/database.ts'
import type { PolicyDeps } from '#policies/deps.ts'
import { findCurrent, lockPolicyAt, requirePolicy } from '#policies/find-policy.ts'
import { nextRevision, type Policy } from '#policies/policy.ts'
import { saveChange } from '#policies/save-change.ts'

import { findExamples, replaceExamples } from './example-store.ts'

export function serveReadPolicyExamples(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, readPolicyExamples, async ({ params }, { principal: { organizationId } }) => {
    // The policy first: if the examples change in between, its revision is too old to overwrite them.
    const policy = await requirePolicy(db, organizationId, params.policy_id)
    return present(policy, await findExamples(db, { organizationId, policyId: policy.id }))
  })
}

export function serveReplacePolicyExamples(app: FastifyInstance, deps: PolicyDeps) {
  bindMutation(app, replacePolicyExamples, deps, {
    async change(tx, { params, body: { revision, examples } }, context) {
      const { organizationId } = context.principal
      const policy = await lockPolicyAt(tx, deps, context, { id: params.policy_id, revision })
      const current = await findCurrent(tx, organizationId, policy)
      const after = nextRevision(policy, deps.now())
      await replaceExamples(tx, { organizationId, policyId: policy.id }, examples)
      await saveChange(tx, deps, context, {
        action: 'updated',
        before: { policy, current },
        after: { policy: after, current },
        facts: { examples: examples.length, examples_sha256: hashExamples(examples) },
      })
      return present(after, examples)
    },
  })
}

const present = ({ id, revision }: Policy, examples: readonly PolicyExample[]) => ({
  object: 'organization.policy.examples' as const,
  policy_id: id,
  revision,
  examples: [...examples],
})

/** Texts of examples can be sensitive, so events have only their hash. */
function hashExamples(examples: readonly PolicyExample[]): string {
  const canonical = examples.map(({ direction, expect, text }) => ({ direction, expect, text }))
  return createHash('sha256').update(JSON.stringify(canonical)).digest('hex')
}
