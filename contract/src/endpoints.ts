import * as apiKey from './api-key.ts'
import * as chatCompletion from './chat-completion.ts'
import * as countTokens from './count-tokens.ts'
import * as credits from './credits.ts'
import type { Endpoint, Method } from './endpoint.ts'
import type { Dialect } from './error-body.ts'
import * as auditEvent from './exports/audit-event.ts'
import * as auditLog from './exports/audit-log.ts'
import * as exportSink from './exports/export-sink.ts'
import * as limits from './limits.ts'
import * as me from './members/me.ts'
import * as member from './members/member.ts'
import * as projectMember from './members/project-member.ts'
import * as session from './members/session.ts'
import * as message from './message.ts'
import * as model from './model.ts'
import * as organizationCredits from './organization-credits.ts'
import * as processes from './organization/processes.ts'
import * as settings from './organization/settings.ts'
import * as traffic from './organization/traffic.ts'
import * as policyEvaluation from './policy-evaluation.ts'
import * as gateway from './policy-gateway/gateway.ts'
import * as guardrails from './policy-gateway/guardrails.ts'
import * as proposals from './policy-gateway/proposals.ts'
import * as gatewayQuotas from './policy-gateway/quotas.ts'
import * as policy from './policy.ts'
import * as project from './project.ts'
import * as response from './response.ts'
import * as serviceInfo from './service-info.ts'
import * as approval from './two-persons/approval.ts'
import * as webhook from './webhook.ts'

/** Every endpoint of the API. */
export const endpoints = [
  policy.listPolicies,
  policy.createPolicy,
  policy.retrievePolicy,
  policy.updatePolicy,
  policy.publishPolicy,
  policy.pausePolicy,
  policy.resumePolicy,
  policy.deletePolicy,
  policy.listPolicyVersions,
  policy.retrievePolicyVersion,
  policy.restorePolicyVersion,
  policy.readPolicyRollout,
  approval.listPolicyApprovals,
  approval.approvePolicy,
  approval.withdrawPolicyApproval,
  policyEvaluation.evaluatePolicy,
  policyEvaluation.replayPolicy,
  policyEvaluation.readPolicyExamples,
  policyEvaluation.replacePolicyExamples,
  policyEvaluation.readPolicyDecisions,
  gateway.readGatewayConfig,
  gateway.saveGatewayConfig,
  gateway.simulateGateway,
  gateway.listGatewayHistory,
  gateway.restoreGatewayRevision,
  gateway.readGatewayRollout,
  gatewayQuotas.listGatewayQuotas,
  guardrails.listGuardrails,
  guardrails.createGuardrail,
  guardrails.retrieveGuardrail,
  guardrails.updateGuardrail,
  guardrails.deleteGuardrail,
  guardrails.testGuardrail,
  proposals.listGatewayProposals,
  proposals.createGatewayProposal,
  proposals.retrieveGatewayProposal,
  proposals.approveGatewayProposal,
  proposals.withdrawGatewayProposal,
  exportSink.listExports,
  exportSink.createExport,
  exportSink.retrieveExport,
  exportSink.updateExport,
  exportSink.deleteExport,
  exportSink.testExport,
  exportSink.replayExport,
  exportSink.listExportDeadLetters,
  exportSink.requeueExportDeadLetters,
  auditEvent.listAuditEvents,
  auditEvent.readAuditHistogram,
  auditLog.readAuditProof,
  auditLog.listAuditRecords,
  auditLog.listAuditCheckpoints,
  project.listProjects,
  project.createProject,
  project.retrieveProject,
  project.updateProject,
  project.archiveProject,
  projectMember.listProjectMembers,
  projectMember.setProjectMember,
  projectMember.deleteProjectMember,
  apiKey.listProjectApiKeys,
  apiKey.createProjectApiKey,
  apiKey.updateProjectApiKey,
  apiKey.deleteProjectApiKey,
  apiKey.listAdminApiKeys,
  apiKey.createAdminApiKey,
  apiKey.deleteAdminApiKey,
  member.listMembers,
  member.createMember,
  member.createMemberInvitation,
  member.retrieveMember,
  member.updateMember,
  member.deleteMember,
  session.listMemberSessions,
  session.deleteMemberSessions,
  session.deleteMemberSession,
  member.listRoles,
  settings.readOrganizationSettings,
  settings.updateOrganizationSettings,
  me.readMe,
  limits.readLimits,
  model.listOrganizationModels,
  organizationCredits.readOrganizationCredits,
  credits.listLedgerEntries,
  credits.readUsage,
  processes.readProcesses,
  traffic.readTraffic,
  traffic.readRefusals,
  message.createMessage,
  countTokens.countTokens,
  response.createResponse,
  chatCompletion.createChatCompletion,
  model.listModels,
  model.retrieveModel,
  credits.readCredits,
  webhook.receiveStripeEvent,
  serviceInfo.readRoot,
  serviceInfo.readOpenApi,
  serviceInfo.readWellKnownOpenApi,
  auditLog.readAuditKeys,
  serviceInfo.readLiveness,
  serviceInfo.readReadiness,
] as const satisfies readonly Endpoint[]

/** The error dialect by path, for known and unknown paths. The first match counts. */
const dialectByPrefix: readonly (readonly [prefix: string, dialect: Dialect])[] = [
  ['/v1/messages/count_tokens', 'count_tokens'],
  ['/v1/messages', 'messages'],
  ['/policy/messages', 'messages'],
  ['/v1/responses', 'responses'],
  ['/v1/chat/completions', 'openai'],
  ['/v1/credits', 'openai'],
  ['/v1/models', 'openai'],
  ['/policy/chat/completions', 'openai'],
]

const isAtOrBelow = (path: string, prefix: string) =>
  path === prefix || path.startsWith(`${prefix}/`)

export function dialectOfPath(path: string): Dialect {
  return dialectByPrefix.find(([prefix]) => isAtOrBelow(path, prefix))?.[1] ?? 'admin'
}

/** The realm a 401 names, by family of paths. */
export function realmOfPath(path: string): 'organization' | 'policy-gateway' | 'inference' {
  if (isAtOrBelow(path, '/v1/organization') || isAtOrBelow(path, '/auth')) return 'organization'
  return isAtOrBelow(path, '/api/policy-gateway') ? 'policy-gateway' : 'inference'
}

/** The methods of the endpoints at this path; empty when there is none. */
export function methodsAt(
  path: string,
  among: readonly { method: Method; path: string }[] = endpoints,
): Method[] {
  const segments = path.split('/')
  return among
    .filter((endpoint) => matches(endpoint.path.split('/'), segments))
    .map(({ method }) => method)
}

function matches(pattern: readonly string[], segments: readonly string[]): boolean {
  // The rest of the path, of a page that has pages below it.
  if (pattern.at(-1) === '*') {
    const parts = pattern.slice(0, -1)
    return segments.length > parts.length && matches(parts, segments.slice(0, parts.length))
  }
  return (
    pattern.length === segments.length &&
    pattern.every((part, index) =>
      part.startsWith(':') ? segments[index] !== '' : part === segments[index],
    )
  )
}
