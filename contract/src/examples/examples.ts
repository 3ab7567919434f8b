import type { Endpoint } from '../endpoint.ts'
import type { endpoints } from '../endpoints.ts'
import { apiKeyExamples } from './api-key.ts'
import { approvalExamples } from './approval.ts'
import { auditEventExamples } from './audit-event.ts'
import { auditLogExamples } from './audit-log.ts'
import { creditExamples, trafficExamples } from './credits.ts'
import type { Example } from './example.ts'
import { exportSinkExamples } from './export-sink.ts'
import { gatewayExamples } from './gateway.ts'
import { guardrailExamples } from './guardrails.ts'
import { inferenceExamples } from './inference.ts'
import { memberExamples } from './member.ts'
import { modelExamples } from './model.ts'
import { policyEvaluationExamples } from './policy-evaluation.ts'
import { policyExamples } from './policy.ts'
import { projectMemberExamples } from './project-member.ts'
import { projectExamples } from './project.ts'
import { proposalExamples } from './proposals.ts'
import { serviceInfoExamples } from './service-info.ts'
import { settingsExamples } from './settings.ts'

/** One example for each operation; an endpoint without one does not type-check. */
const examples = {
  ...policyExamples,
  ...approvalExamples,
  ...policyEvaluationExamples,
  ...gatewayExamples,
  ...guardrailExamples,
  ...proposalExamples,
  ...exportSinkExamples,
  ...auditEventExamples,
  ...auditLogExamples,
  ...projectExamples,
  ...projectMemberExamples,
  ...apiKeyExamples,
  ...memberExamples,
  ...settingsExamples,
  ...creditExamples,
  ...trafficExamples,
  ...modelExamples,
  ...inferenceExamples,
  ...serviceInfoExamples,
} satisfies Record<(typeof endpoints)[number]['id'], Example>

/** The example of an operation; undefined for endpoints that only tests have. */
export const exampleOf = ({ id }: Endpoint): Example | undefined =>
  (examples as Record<string, Example>)[id]
