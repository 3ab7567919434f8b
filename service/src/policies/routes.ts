import type { FastifyInstance } from 'fastify'

import { serveCreatePolicy } from './create-policy.ts'
import { serveDeletePolicy } from './delete-policy.ts'
import { serveListPolicies } from './list-policies.ts'
import { servePausePolicy, serveResumePolicy } from './pause-and-resume-policy.ts'
import { servePublishPolicy } from './publish-policy.ts'
import { serveReadPolicyRollout } from './read-rollout.ts'
import { serveListPolicyVersions, serveRetrievePolicyVersion } from './read-versions.ts'
import { serveRestorePolicyVersion } from './restore-version.ts'
import { serveRetrievePolicy } from './retrieve-policy.ts'
import type { PolicyTools } from './tools.ts'
import { serveUpdatePolicy } from './update-policy.ts'

/** The organization's policies: drafts, versions, and what is in force where. */
export function servePolicies(app: FastifyInstance, tools: PolicyTools) {
  serveListPolicies(app, tools)
  serveCreatePolicy(app, tools)
  serveRetrievePolicy(app, tools)
  serveUpdatePolicy(app, tools)
  servePublishPolicy(app, tools)
  servePausePolicy(app, tools)
  serveResumePolicy(app, tools)
  serveDeletePolicy(app, tools)
  serveListPolicyVersions(app, tools)
  serveRetrievePolicyVersion(app, tools)
  serveRestorePolicyVersion(app, tools)
  serveReadPolicyRollout(app, tools)
}
