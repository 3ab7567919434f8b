import {
  createAdminApiKey,
  createProjectApiKey,
  deleteAdminApiKey,
  deleteProjectApiKey,
  listAdminApiKeys,
  listProjectApiKeys,
  updateProjectApiKey,
} from '@gatehouse/contract/api-key'
import type { Endpoint } from '@gatehouse/contract/endpoint'
import { listAuditEvents } from '@gatehouse/contract/exports/audit-event'
import {
  listAuditCheckpoints,
  listAuditRecords,
  readAuditProof,
} from '@gatehouse/contract/exports/audit-log'
import {
  createExport,
  deleteExport,
  listExportDeadLetters,
  listExports,
  replayExport,
  requeueExportDeadLetters,
  retrieveExport,
  testExport,
  updateExport,
} from '@gatehouse/contract/exports/export-sink'
import {
  createMember,
  createMemberInvitation,
  deleteMember,
  listMembers,
  retrieveMember,
  updateMember,
} from '@gatehouse/contract/members/member'
import {
  deleteProjectMember,
  listProjectMembers,
  setProjectMember,
} from '@gatehouse/contract/members/project-member'
import {
  deleteMemberSession,
  deleteMemberSessions,
  listMemberSessions,
} from '@gatehouse/contract/members/session'
import {
  createPolicy,
  deletePolicy,
  listPolicies,
  listPolicyVersions,
  pausePolicy,
  publishPolicy,
  readPolicyRollout,
  restorePolicyVersion,
  resumePolicy,
  retrievePolicy,
  retrievePolicyVersion,
  updatePolicy,
} from '@gatehouse/contract/policy'
import {
  evaluatePolicy,
  replayPolicy,
  readPolicyDecisions,
  readPolicyExamples,
  replacePolicyExamples,
} from '@gatehouse/contract/policy-evaluation'
import {
  listGatewayHistory,
  restoreGatewayRevision,
  saveGatewayConfig,
} from '@gatehouse/contract/policy-gateway/gateway'
import {
  createGuardrail,
  deleteGuardrail,
  listGuardrails,
  retrieveGuardrail,
  testGuardrail,
  updateGuardrail,
} from '@gatehouse/contract/policy-gateway/guardrails'
import {
  createGatewayProposal,
  listGatewayProposals,
  retrieveGatewayProposal,
  withdrawGatewayProposal,
} from '@gatehouse/contract/policy-gateway/proposals'
import {
  archiveProject,
  createProject,
  listProjects,
  retrieveProject,
  updateProject,
} from '@gatehouse/contract/project'
import { listPolicyApprovals } from '@gatehouse/contract/two-persons/approval'
import { beforeEach, expect, test } from 'vitest'

import { createOrganization } from '#access/manage-organizations.ts'
import { publishKeys, signCheckpoints } from '#audit/log/sign-checkpoints.ts'
import { createSigningKey } from '#audit/log/signing-keys.ts'
import { numberAllEvents } from '#audit/log/testing/number-all-events.ts'
import { createMemberSession } from '#testing/member-session.ts'
import { createTestApi } from '#testing/test-api.ts'

// An administrator with every permission tries the ids of another organization, in requests that are valid in every
// other way: the same requests succeed for the owner.

let api: Awaited<ReturnType<typeof createTestApi>>
let foreign: Awaited<ReturnType<typeof createOrganization>>
let owned: Awaited<ReturnType<typeof prepareOwner>>
beforeEach(async () => {
  api = await createTestApi()
  foreign = await createOrganization('Foreign Ltd', api.house)
  owned = await prepareOwner()
})

const canary = 'canary-5d1e'

const webhook = {
  endpoint: 'https://hooks.example.com',
  secret: `whsec_${Buffer.alloc(24).toString('base64')}`,
}

async function prepareOwner() {
  const { id: policy_id } = (
    await api.send(createPolicy, { body: { name: canary, rule: 'cel: text.contains("unkind")' } })
  ).body
  const examples = [{ text: canary, direction: 'request', expect: 'must_not_match' }]
  await api.send(replacePolicyExamples, { params: { policy_id }, body: { revision: 1, examples } })
  await api.send(publishPolicy, { params: { policy_id }, body: { revision: 2 } })
  const { id: project_id } = (await api.send(createProject, { body: { name: canary } })).body
  const key = await api.send(createProjectApiKey, {
    params: { project_id },
    body: { name: canary },
  })
  const admin = await api.send(createAdminApiKey, { body: { name: canary, permissions: [] } })
  await api.send(saveGatewayConfig, { body: { config: { name: canary } } })
  const history_id = (await api.send(listGatewayHistory)).body.data[0]!.id
  const event_id = (await api.send(listAuditEvents)).body.data[0]!.id
  await signAuditLog()
  const sink = await api.send(createExport, {
    body: { type: 'webhook', label: canary, config: webhook },
  })
  const { id: export_id } = (sink.body as unknown as { export: { id: string } }).export
  const made = await api.send(createGuardrail, {
    body: { name: canary, url: webhook.endpoint, secret: webhook.secret },
  })
  const { id: guardrail_id } = (made.body as unknown as { guardrail: { id: string } }).guardrail
  const address = `${canary}@example.com`
  const body = { email: address, role: 'viewer' }
  const { id: member_id } = (await api.send(createMember, { body })).body
  const proposed = await api.send(createGatewayProposal, {
    body: { config: { name: canary } },
  })
  const { id: proposal_id } = (proposed.body as unknown as { proposal: { id: string } }).proposal
  const { organizationId } = api.organization
  const signedIn = await createMemberSession(api.house, { organizationId, role: 'viewer' })
  const ids = {
    policy_id,
    project_id,
    history_id,
    event_id,
    export_id,
    guardrail_id,
    proposal_id,
    member_id,
    signed_in_id: signedIn.memberId,
    session_id: signedIn.sessionId,
  }
  return { ...ids, key_id: key.body.id, admin_key_id: admin.body.id }
}

async function signAuditLog() {
  await numberAllEvents(api.db)
  const keys = [createSigningKey({ version: 1, bytes: Buffer.alloc(32, 7) })] as const
  await publishKeys({ ...api.house, keys })
  await signCheckpoints({ ...api.house, keys })
}

type Sent = NonNullable<Parameters<typeof api.send>[1]>
type Probe = [endpoint: Endpoint, sent: Sent, refusal: [status: number, code: string]]

/** In an order in which all succeed for the owner, whose policy has revision 3. */
function probes(): Probe[] {
  const { policy_id, project_id, key_id, admin_key_id, history_id, event_id } = owned
  const { export_id, guardrail_id, proposal_id, member_id, signed_in_id, session_id } = owned
  const member = { params: { member_id } }
  const signedIn = { params: { member_id: signed_in_id } }
  const session = { params: { ...signedIn.params, session_id } }
  const noMember: Probe[2] = [404, 'member_not_found']
  const guardrail = { params: { guardrail_id } }
  const proposal = { params: { proposal_id } }
  const noProposal: Probe[2] = [404, 'proposal_not_found']
  const noGuardrail: Probe[2] = [404, 'guardrail_not_found']
  const guarded = { name: 'x', url: webhook.endpoint, secret: webhook.secret }
  const sink = { params: { export_id } }
  const noSink: Probe[2] = [404, 'export_not_found']
  const policy = { params: { policy_id } }
  const version = { params: { policy_id, version: '1' } }
  const project = { params: { project_id } }
  const projectMember = { params: { project_id, member_id } }
  const noPolicy: Probe[2] = [404, 'policy_not_found']
  const noProject: Probe[2] = [404, 'project_not_found']
  const noCursor: Probe[2] = [400, 'invalid_cursor']
  const scoped = { name: 'x', rule: 'Be kind.', scope: 'projects', project_ids: [project_id] }
  const tried = { text: canary, direction: 'request' }
  const ownLimits = { limits: { requests_per_minute: 1 } }
  const at = (revision: number, more: object = {}) => ({ body: { revision, ...more } })
  return [
    [listPolicies, { query: { after: policy_id } }, noCursor],
    [listProjects, { query: { after: project_id } }, noCursor],
    [listAdminApiKeys, { query: { after: admin_key_id } }, noCursor],
    [listProjectApiKeys, { ...project, query: { after: key_id } }, noProject],
    [createPolicy, { body: scoped }, [422, 'unknown_project']],
    [
      createGuardrail,
      { body: { ...guarded, project_ids: [project_id] } },
      [422, 'unknown_project'],
    ],
    [retrievePolicy, policy, noPolicy],
    [listPolicyVersions, policy, noPolicy],
    [retrievePolicyVersion, version, noPolicy],
    [readPolicyRollout, policy, noPolicy],
    [listPolicyApprovals, policy, noPolicy],
    [readPolicyExamples, policy, noPolicy],
    [readPolicyDecisions, policy, noPolicy],
    [evaluatePolicy, { ...policy, body: { texts: [tried], version: 1 } }, noPolicy],
    [replayPolicy, { ...policy, body: {} }, noPolicy],
    [updatePolicy, { ...policy, ...at(3, { rule: 'Be mine.' }) }, noPolicy],
    [replacePolicyExamples, { ...policy, ...at(4, { examples: [] }) }, noPolicy],
    [publishPolicy, { ...policy, ...at(5) }, noPolicy],
    [pausePolicy, { ...policy, ...at(6) }, noPolicy],
    [resumePolicy, { ...policy, ...at(7) }, noPolicy],
    [restorePolicyVersion, { ...version, ...at(8) }, noPolicy],
    [deletePolicy, { ...policy, query: { revision: '9' } }, noPolicy],
    [retrieveProject, project, noProject],
    [updateProject, { ...project, body: { name: 'Mine' } }, noProject],
    [setProjectMember, { ...projectMember, body: { role: 'project_member' } }, noProject],
    [listProjectMembers, { ...project, query: { after: member_id } }, noProject],
    [listProjectMembers, project, noProject],
    [deleteProjectMember, projectMember, noProject],
    [updateProjectApiKey, { params: { project_id, key_id }, body: ownLimits }, noProject],
    [listProjectApiKeys, project, noProject],
    [createProjectApiKey, { ...project, body: { name: 'Mine' } }, noProject],
    [deleteProjectApiKey, { params: { project_id, key_id } }, noProject],
    [deleteAdminApiKey, { params: { key_id: admin_key_id } }, [404, 'api_key_not_found']],
    [archiveProject, project, noProject],
    [listGatewayHistory, { query: { after: history_id } }, noCursor],
    [listAuditEvents, { query: { after: event_id } }, noCursor],
    [readAuditProof, { params: { event_id } }, [404, 'audit_event_not_found']],
    [restoreGatewayRevision, { params: { history_id } }, [404, 'history_entry_not_found']],
    [listGuardrails, { query: { after: guardrail_id } }, noCursor],
    [retrieveGuardrail, guardrail, noGuardrail],
    [updateGuardrail, { ...guardrail, body: { name: 'Mine' } }, noGuardrail],
    [testGuardrail, { ...guardrail, body: {} }, noGuardrail],
    [retrieveGatewayProposal, proposal, noProposal],
    [createGatewayProposal, { body: { deleted_guardrail: guardrail_id } }, noGuardrail],
    [listGatewayProposals, { query: { after: proposal_id } }, noCursor],
    [withdrawGatewayProposal, proposal, noProposal],
    [deleteGuardrail, guardrail, noGuardrail],
    [listMembers, { query: { after: member_id } }, noCursor],
    [retrieveMember, member, noMember],
    [updateMember, { ...member, body: { name: 'Mine' } }, noMember],
    [listMemberSessions, signedIn, noMember],
    [deleteMemberSession, session, noMember],
    [deleteMemberSessions, signedIn, noMember],
    [createMemberInvitation, member, noMember],
    [deleteMember, member, noMember],
    [listExports, { query: { after: export_id } }, noCursor],
    [retrieveExport, sink, noSink],
    [updateExport, { ...sink, body: { label: 'Mine' } }, noSink],
    [testExport, sink, noSink],
    [replayExport, { ...sink, body: { from: '2026-01-01' } }, noSink],
    [listExportDeadLetters, sink, noSink],
    [requeueExportDeadLetters, { ...sink, body: {} }, noSink],
    [deleteExport, sink, noSink],
  ]
}

const nameOf = ([endpoint, { query }]: Probe) =>
  `${endpoint.method} ${endpoint.path} ${JSON.stringify(query ?? {})}`

type OwnedTable =
  | 'policy'
  | 'policy_example'
  | 'policy_version'
  | 'project'
  | 'api_key'
  | 'limit_override'
  | 'gateway_config'
  | 'gateway_history'
  | 'guardrail'
  | 'gateway_proposal'
  | 'policy_approval'
  | 'member'
  | 'project_member'
  | 'session'
  | 'export_sink'
  | 'export_cursor'
  | 'event'

/** All that the owner has, as PostgreSQL stores it. */
async function readOwner() {
  const { organizationId } = api.organization
  const rowsOf = (table: OwnedTable) =>
    api.db.selectFrom(table).selectAll().where('organization_id', '=', organizationId).execute()
  return {
    policies: await rowsOf('policy'),
    versions: await rowsOf('policy_version'),
    examples: await rowsOf('policy_example'),
    projects: await rowsOf('project'),
    keys: (await rowsOf('api_key')).map((row) => ({ ...row, last_used_at: null })),
    limits: await rowsOf('limit_override'),
    gateway: [await rowsOf('gateway_config'), await rowsOf('gateway_history')],
    guardrails: await rowsOf('guardrail'),
    consents: [await rowsOf('gateway_proposal'), await rowsOf('policy_approval')],
    sinks: [await rowsOf('export_sink'), await rowsOf('export_cursor')],
    members: [await rowsOf('member'), await rowsOf('project_member'), await rowsOf('session')],
    events: await rowsOf('event'),
  }
}

test('ids of another organization are not found, and nothing of it is told or changed', async () => {
  const before = await readOwner()
  const found: unknown[] = []
  const told: string[] = []
  for (const probe of probes()) {
    const [endpoint, sent] = probe
    const { status, body } = await api.send(endpoint, { ...sent, credential: foreign.adminKey })
    found.push([nameOf(probe), [status, body.error?.code]])
    if (JSON.stringify(body).includes(canary)) told.push(nameOf(probe))
  }
  expect(found).toEqual(probes().map((probe) => [nameOf(probe), probe[2]]))
  expect(told).toEqual([])
  expect(await readOwner()).toEqual(before)
  // The requests are not refused for another reason: the owner succeeds with them.
  for (const probe of probes()) {
    const { status } = await api.send(probe[0], probe[1])
    expect([nameOf(probe), Math.floor(status / 100)]).toEqual([nameOf(probe), 2])
  }
})

test('the audit log has only what belongs to the organization, whatever number is asked for', async () => {
  const ofOwner = (await api.send(listAuditRecords)).body.data
  expect(ofOwner.length).toBeGreaterThan(5)
  expect((await api.send(listAuditCheckpoints)).body.data).toHaveLength(1)
  const { organizationId, adminKey: credential } = foreign
  for (const after of ['0', '1', '3']) {
    const records = await api.send(listAuditRecords, { query: { after }, credential })
    const checkpoints = await api.send(listAuditCheckpoints, { query: { after }, credential })
    const told = [records.body, checkpoints.body]
      .flatMap((body) => JSON.stringify(body).match(/"org_id":"\w+"/g) ?? [])
      .filter((text) => text !== `"org_id":"${organizationId}"`)
    expect(told).toEqual([])
    expect([records.status, checkpoints.status]).toEqual([200, 200])
    expect(JSON.stringify([records.body, checkpoints.body])).not.toContain(canary)
  }
})

/** What someone who may create keys, and nothing else, tries to give a key. */
const escalations = [
  ['administrator', ['policies.publish'], 403],
  ['administrator', ['credits.write'], 403],
  ['administrator', ['admin_api_keys.write', 'audit.read'], 403],
  ['administrator', ['model.invoke'], 422],
  ['administrator', ['everything'], 422],
  ['project', ['exports.write'], 403],
  ['project', ['policy_gateway.write'], 403],
] as const

test('no caller gives a key a permission that the caller does not have', async () => {
  const narrow = { name: 'Narrow', permissions: ['admin_api_keys.write', 'projects.write'] }
  const { value: credential } = (await api.send(createAdminApiKey, { body: narrow })).body
  const params = { project_id: owned.project_id }
  const found: unknown[] = []
  for (const [kind, permissions] of escalations) {
    const sent = { credential, body: { name: 'Wide', permissions } }
    const { status } = await (kind === 'project'
      ? api.send(createProjectApiKey, { ...sent, params })
      : api.send(createAdminApiKey, sent))
    found.push([kind, permissions, status])
  }
  expect(found).toEqual(escalations)
})
