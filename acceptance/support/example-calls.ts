import { stackModels, type UpstreamUrls } from '@gatehouse/tools/stack-models'

import type { Sent } from './call.ts'
import type { Operation } from './description.ts'

// One call of every operation of the contract, made of the examples in the description. The description and the command
// line client are both tested with them, so that a new operation cannot be forgotten in either.

export type Json = Record<string, unknown>

/** What differs from the example, because ids and revisions are those of this service. */
export type Changes = Pick<Sent, 'params' | 'query' | 'headers'> & { body?: Json }

/** The model of the examples. */
export const exampleModels = (urls: UpstreamUrls) => {
  const catalogue = stackModels(urls)
  const [first, ...others] = catalogue.models
  return { ...catalogue, models: [{ ...first, id: 'example-large' }, ...others] }
}

/** The calls, in an order in which each finds what it needs. `answers` has the answers of those that came before. */
export function exampleCalls(answers: ReadonlyMap<string, Json>): Record<string, () => Changes> {
  const idFrom = (operation: string) => String(answers.get(operation)?.['id'])

  const project = () => ({ params: { project_id: idFrom('createProject') } })
  const projectKey = () => ({
    params: { ...project().params, key_id: idFrom('createProjectApiKey') },
  })
  const policy = () => ({ params: { policy_id: idFrom('createPolicy') } })
  const version = () => ({ params: { ...policy().params, version: '1' } })
  const sink = () => {
    const { export: made } = answers.get('createExport') as { export: { id: string } }
    return { params: { export_id: made.id } }
  }
  const member = () => ({ params: { member_id: idFrom('createMember') } })
  const projectMember = () => ({ params: { ...project().params, ...member().params } })
  const guardrail = () => {
    const { guardrail: made } = answers.get('createGuardrail') as { guardrail: { id: string } }
    return { params: { guardrail_id: made.id } }
  }
  const proposal = () => {
    const { proposal: made } = answers.get('createGatewayProposal') as { proposal: { id: string } }
    return { params: { proposal_id: made.id } }
  }
  const at = (revision: number) => ({ body: { revision } })

  return {
    readRoot: () => ({}),
    readOpenApi: () => ({}),
    readWellKnownOpenApi: () => ({}),
    readLiveness: () => ({}),
    readReadiness: () => ({}),
    createProject: () => ({ headers: { 'idempotency-key': 'k1' } }),
    createMember: () => ({}),
    createMemberInvitation: member,
    listProjects: () => ({}),
    retrieveProject: project,
    updateProject: project,
    setProjectMember: projectMember,
    listProjectMembers: project,
    deleteProjectMember: projectMember,
    createProjectApiKey: project,
    listProjectApiKeys: project,
    updateProjectApiKey: projectKey,
    deleteProjectApiKey: projectKey,
    archiveProject: project,
    readOrganizationSettings: () => ({}),
    updateOrganizationSettings: () => ({}),
    createAdminApiKey: () => ({}),
    listAdminApiKeys: () => ({}),
    deleteAdminApiKey: () => ({ params: { key_id: idFrom('createAdminApiKey') } }),
    createPolicy: () => ({}),
    listPolicies: () => ({}),
    updatePolicy: () => ({ ...policy(), ...at(1) }),
    replacePolicyExamples: () => ({ ...policy(), ...at(2) }),
    readPolicyExamples: policy,
    evaluatePolicy: policy,
    replayPolicy: policy,
    publishPolicy: () => ({ ...policy(), ...at(3) }),
    retrievePolicy: policy,
    pausePolicy: () => ({ ...policy(), ...at(4) }),
    resumePolicy: () => ({ ...policy(), ...at(5) }),
    listPolicyVersions: policy,
    retrievePolicyVersion: version,
    restorePolicyVersion: () => ({ ...version(), ...at(6) }),
    readPolicyRollout: policy,
    listPolicyApprovals: policy,
    approvePolicy: policy,
    withdrawPolicyApproval: policy,
    readPolicyDecisions: policy,
    deletePolicy: () => ({
      ...policy(),
      query: { revision: answers.get('restorePolicyVersion')?.['revision'] },
    }),
    readGatewayConfig: () => ({}),
    saveGatewayConfig: () => ({}),
    simulateGateway: () => ({ body: { persist: true } }),
    listGatewayHistory: () => ({}),
    listAuditEvents: () => ({
      query: { object_id: undefined, order: 'asc', from: '2026-01-01', to: undefined },
    }),
    readAuditHistogram: () => ({}),
    readAuditKeys: () => ({}),
    listAuditRecords: () => ({ query: { after: 0 } }),
    listAuditCheckpoints: () => ({ query: { after: undefined } }),
    readAuditProof: () => {
      const { data } = answers.get('listAuditEvents') as { data: { id: string }[] }
      return { params: { event_id: data[0]?.id } }
    },
    createGuardrail: () => ({}),
    listGuardrails: () => ({}),
    retrieveGuardrail: guardrail,
    updateGuardrail: guardrail,
    createGatewayProposal: () => ({
      body: { guardrail: { id: guardrail().params.guardrail_id, change: { mode: 'enforcing' } } },
    }),
    listGatewayProposals: () => ({}),
    retrieveGatewayProposal: proposal,
    approveGatewayProposal: proposal,
    withdrawGatewayProposal: proposal,
    testGuardrail: guardrail,
    deleteGuardrail: guardrail,
    listMembers: () => ({ query: { status: undefined } }),
    retrieveMember: member,
    updateMember: member,
    listMemberSessions: member,
    deleteMemberSession: member,
    deleteMemberSessions: member,
    deleteMember: member,
    listRoles: () => ({}),
    readMe: () => ({}),
    createExport: () => ({}),
    listExports: () => ({}),
    retrieveExport: sink,
    updateExport: sink,
    testExport: sink,
    replayExport: sink,
    listExportDeadLetters: sink,
    requeueExportDeadLetters: sink,
    deleteExport: sink,
    restoreGatewayRevision: () => {
      const { data } = answers.get('listGatewayHistory') as { data: { id: string }[] }
      return { params: { history_id: data[1]?.id } }
    },
    readGatewayRollout: () => ({}),
    listGatewayQuotas: () => ({}),
    createMessage: () => ({}),
    createResponse: () => ({}),
    createChatCompletion: () => ({}),
    countTokens: () => ({}),
    listModels: () => ({}),
    retrieveModel: () => ({}),
    readCredits: () => ({}),
    readLimits: () => ({}),
    listOrganizationModels: () => ({}),
    readOrganizationCredits: () => ({}),
    listLedgerEntries: () => ({}),
    readUsage: () => ({}),
    readProcesses: () => ({}),
    readTraffic: () => ({ query: { from: undefined } }),
    readRefusals: () => ({ query: { from: undefined } }),
    receiveStripeEvent: () => ({}),
  }
}

/** The example of an operation as the description shows it. */
export function exampleIn({ parameters = [], requestBody }: Operation) {
  const shown = parameters.filter((parameter) => 'example' in parameter)
  const inPlace = (place: string) =>
    Object.fromEntries(
      shown.filter((each) => each.in === place).map(({ name, example }) => [name, example]),
    )
  const body = requestBody?.content['application/json']?.example as Json | undefined
  return { params: inPlace('path'), query: inPlace('query'), body }
}
