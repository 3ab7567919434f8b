import { setTimeout as sleep } from 'node:timers/promises'

import {
  createAdminApiKey,
  createProjectApiKey,
  deleteProjectApiKey,
} from '@gatehouse/contract/api-key'
import { createMember, deleteMember, updateMember } from '@gatehouse/contract/members/member'
import { deleteProjectMember, setProjectMember } from '@gatehouse/contract/members/project-member'
import { listModels } from '@gatehouse/contract/model'
import { AdminKeyPermission, type Permission } from '@gatehouse/contract/permission'
import type { ProjectRole, Role } from '@gatehouse/contract/role'

import { createOrganization } from '#access/manage-organizations.ts'
import { startSession } from '#access/sessions/start-session.ts'
import { transact } from '#platform/transaction.ts'
import type { createTestApi } from '#testing/test-api.ts'
import { createProject } from '#testing/test-gateway.ts'

import * as model from './member-model.ts'
import * as projectModel from './project-model.ts'

// Steps of one organization, each taken by the service and by the model.

type Api = Awaited<ReturnType<typeof createTestApi>>

export type Step = { by: model.Actor } & (
  | { kind: 'invite'; email: string; role: Role }
  | {
      kind: 'edit'
      email: string
      role?: Role | undefined
      status?: 'active' | 'suspended' | undefined
    }
  | { kind: 'remove'; email: string }
  | { kind: 'make_key'; name: string; permissions: readonly Permission[] }
  | ProjectStep
  | { kind: 'sign_in'; email: string }
)

/** `project`: which of the two. */
type ProjectStep = { project: 0 | 1 } & (
  | { kind: 'join'; email: string; projectRole: ProjectRole }
  | { kind: 'leave'; email: string }
  | {
      kind: 'make_project_key'
      name: string
      own?: boolean | undefined
      permissions: readonly Permission[]
    }
  | { kind: 'revoke_project_key'; name: string }
)

export type Sequence = Awaited<ReturnType<typeof openSequence>>

/** A new organization with two projects, in which one key has every permission. */
export async function openSequence(api: Api) {
  const { organizationId, adminKey, projectId } = await createOrganization('Example Ltd', api.house)
  const another = await createProject(api.house, organizationId)
  return {
    api,
    organizationId,
    expected: model.createMemberModel(new Set(AdminKeyPermission.options)),
    /** The ids of members by address; of those who are gone, one that nothing has. */
    ids: new Map<string, string>(),
    credentials: new Map<string, string>([['first', adminKey]]),
    projects: [projectId, another] as const,
    /** All that were ever made, by name. */
    projectKeys: new Map<string, { id: string; value: string }>(),
  }
}

const nameOf = (actor: model.Actor) => ('key' in actor ? actor.key : actor.member)

/** Takes a step in both; undefined: the actor has no credential, so there is none to take. */
export async function takeStep(
  step: Step,
  sequence: Sequence,
): Promise<{ answer: model.Outcome; expected: model.Outcome } | undefined> {
  if (step.kind === 'sign_in') return signIn(step.email, sequence)
  const credential = sequence.credentials.get(nameOf(step.by))
  if (!credential) return undefined
  const expected = decide(step, sequence)
  const answer = await sendUntilTaken(step, credential, sequence)
  // What this process knows of credentials is older than the change until it is told.
  if (answer[0] < 300) for (const { onGap } of sequence.api.house.access.subscribers) onGap()
  return { answer, expected }
}

type Sent = Exclude<Step, { kind: 'sign_in' }>

function decide(step: Sent, { expected, projects }: Sequence): model.Outcome {
  switch (step.kind) {
    case 'invite':
      return model.invite(expected, step.by, step)
    case 'edit':
      return model.edit(expected, step.by, step)
    case 'remove':
      return model.remove(expected, step.by, step.email)
    case 'make_key':
      return model.makeKey(expected, step.by, { ...step, permissions: new Set(step.permissions) })
    default:
      return decideInProject({ ...step, project: projects[step.project] }, expected)
  }
}

type InProject =
  Extract<Step, { project: 0 | 1 }> extends infer Each
    ? Each extends { project: 0 | 1 }
      ? Omit<Each, 'project'> & { project: string }
      : never
    : never

function decideInProject(step: InProject, expected: model.MemberModel): model.Outcome {
  switch (step.kind) {
    case 'join':
      return projectModel.join(expected, step.by, step)
    case 'leave':
      return projectModel.leave(expected, step.by, step)
    case 'make_project_key':
      return projectModel.makeProjectKey(expected, step.by, step)
    default:
      return projectModel.revokeProjectKey(expected, step.by, step)
  }
}

const retriesMax = 100

/** A machine that is busy sheds calls before they do anything. */
async function sendUntilTaken(step: Sent, credential: string, sequence: Sequence) {
  for (let retry = 0; ; retry++) {
    const answer = await send(step, credential, sequence)
    if (answer[1] !== 'overloaded' || retry >= retriesMax) return answer
    await sleep(50)
  }
}

async function send(step: Sent, credential: string, sequence: Sequence): Promise<model.Outcome> {
  const { api, ids, credentials } = sequence
  const params = { member_id: ('email' in step && ids.get(step.email)) || 'mem_none' }
  switch (step.kind) {
    case 'invite': {
      const { email, role } = step
      const answer = await api.send(createMember, { credential, body: { email, role } })
      if (answer.status === 201) ids.set(email, answer.body.id)
      return outcomeOf(answer)
    }
    case 'edit': {
      const { role, status } = step
      return outcomeOf(await api.send(updateMember, { credential, params, body: { role, status } }))
    }
    case 'remove': {
      const answer = await api.send(deleteMember, { credential, params })
      if (answer.status === 200) for (const known of [ids, credentials]) known.delete(step.email)
      return outcomeOf(answer)
    }
    case 'make_key': {
      const { name, permissions } = step
      const answer = await api.send(createAdminApiKey, { credential, body: { name, permissions } })
      if (answer.status === 201) credentials.set(name, answer.body.value)
      return outcomeOf(answer)
    }
    default:
      return sendInProject(step, { credential, member_id: params.member_id }, sequence)
  }
}

async function sendInProject(
  step: Extract<Step, { project: 0 | 1 }>,
  { credential, member_id }: { credential: string; member_id: string },
  { api, projects, projectKeys }: Sequence,
): Promise<model.Outcome> {
  const project_id = projects[step.project]
  const ofMember = { credential, params: { project_id, member_id } }
  switch (step.kind) {
    case 'join':
      return outcomeOf(
        await api.send(setProjectMember, { ...ofMember, body: { role: step.projectRole } }),
      )
    case 'leave':
      return outcomeOf(await api.send(deleteProjectMember, ofMember))
    case 'make_project_key': {
      const { name, own, permissions } = step
      const body = { name, permissions, ...(own !== undefined && { own }) }
      const sent = { credential, params: { project_id }, body }
      const answer = await api.send(createProjectApiKey, sent)
      if (answer.status === 201) projectKeys.set(name, answer.body as never)
      return outcomeOf(answer)
    }
    default: {
      const key_id = projectKeys.get(step.name)?.id ?? 'key_none'
      const params = { project_id, key_id }
      return outcomeOf(await api.send(deleteProjectApiKey, { credential, params }))
    }
  }
}

/** Whether calls with each project key that was ever made are let in, and whether they have to be. */
export async function tryProjectKeys({ api, expected, projectKeys }: Sequence) {
  const tried: { name: string; isLetIn: boolean; isExpected: boolean }[] = []
  for (const [name, { value }] of projectKeys) {
    const { status } = await api.send(listModels, { credential: value })
    const isExpected = projectModel.works(expected, name)
    tried.push({ name, isLetIn: status !== 401, isExpected })
  }
  return tried
}

type Answer = Awaited<ReturnType<Api['send']>>

const outcomeOf = ({ status, body }: Answer): model.Outcome =>
  status < 400 ? [status] : [status, body.error.code]

/** As a sign-in does it: the person is active from then on, unless suspended. */
async function signIn(
  email: string,
  { api, organizationId, ids, credentials, expected }: Sequence,
) {
  const memberId = ids.get(email)
  const isExpected = model.signIn(expected, email)
  if (memberId === undefined) return undefined
  const { house } = api
  const now = house.now()
  const started = await transact(house.db, async (tx) => {
    await tx
      .updateTable('member')
      .set({ status: 'active' })
      .where('organization_id', '=', organizationId)
      .where('id', '=', memberId)
      .where('status', '=', 'invited')
      .execute()
    const owner = { organizationId, memberId }
    const start = { owner, form: 'token', method: 'test', requestId: null, now } as const
    return startSession(tx, start, { ...house, sessionMaxMs: house.access.sessionMaxMs })
  })
  if (started) credentials.set(email, started.token)
  const asOutcome = (isIn: boolean): model.Outcome => (isIn ? [200] : [401])
  return { answer: asOutcome(started !== undefined), expected: asOutcome(isExpected) }
}
