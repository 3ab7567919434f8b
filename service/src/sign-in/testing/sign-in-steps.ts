import { createMember, deleteMember, updateMember } from '@gatehouse/contract/members/member'
import type { Role } from '@gatehouse/contract/role'

import { startSession } from '#access/sessions/start-session.ts'
import { gatehouse } from '#audit/event.ts'
import { transact } from '#platform/transaction.ts'
import {
  describeMapped,
  type Review,
  reviewMembership,
} from '#sign-in/members/review-membership.ts'
import type { Mapping, SignInProvider } from '#sign-in/providers/read-sign-in.ts'
import type { MemberState } from '#testing/members/member-state.ts'
import type { createTestApi } from '#testing/test-api.ts'

// Steps by which people get roles in one organization: invitations and changes by others, and sign-ins with an account at a
// provider, whose claims may give a role.

/** What the provider says about an account this time. */
export type Said = {
  account: string
  email: string
  isVerified: boolean
  groups: readonly string[]
  lacksGroups: boolean
}

/** Who acts: a key by its name, or the person of an account that has signed in. */
export type By = { key: string } | { account: string }

export type Step =
  | { kind: 'invite'; by: By; email: string; role: Role }
  | { kind: 'edit'; by: By; email: string; role?: Role; status?: 'active' | 'suspended' }
  | { kind: 'remove'; by: By; email: string }
  | { kind: 'sign_in'; said: Said }
  | { kind: 'compare'; said: Said }

type Api = Awaited<ReturnType<typeof createTestApi>>

export type Scene = {
  api: Api
  organizationId: string
  createsMembers: boolean
  /** Of keys by name, and of sessions by account. */
  credentials: Map<string, string>
  /** The members whom accounts have signed in as. */
  memberOf: Map<string, string>
}

/** What the operator's file gives. */
export const given = [
  { trait: 'group', value: 'staff', role: 'developer' },
  { trait: 'group', value: 'leads', role: 'admin' },
  { trait: 'group', value: 'owners', role: 'owner' },
  { trait: 'email', value: 'ada@example.com', role: 'auditor' },
] as const satisfies readonly Omit<Mapping, 'organizationId'>[]

const providerOf = (organizationId: string): SignInProvider => ({
  id: 'corp',
  name: 'Corp',
  issuer: 'https://idp.example.com',
  clientId: 'gatehouse',
  clientSecret: 'x',
  scopes: ['openid'],
  parameters: {},
  claims: {
    groups: 'groups',
    appRoles: 'roles',
    email: 'email',
    emailVerified: 'email_verified',
    name: 'name',
    hostedDomain: null,
  },
  mappings: given.map((each) => ({ ...each, organizationId })),
})

/** The organization's people by id, and its keys. */
export async function readState({ api: { db }, organizationId }: Scene) {
  const rows = await db
    .selectFrom('member')
    .select(['id', 'email', 'role', 'status'])
    .where('organization_id', '=', organizationId)
    .execute()
  const keys = await db
    .selectFrom('api_key')
    .select(['name', 'permissions'])
    .where('organization_id', '=', organizationId)
    .execute()
  const state: MemberState = {
    members: Object.fromEntries(rows.map(({ id, role, status }) => [id, { role, status }])),
    keys: Object.fromEntries(keys.map(({ name, permissions }) => [name, permissions])),
    memberships: {},
    projectKeys: {},
  }
  return { state, idOf: new Map(rows.map(({ email, id }) => [email, id])) }
}

/** Takes a step; undefined: who acts is not signed in. */
export async function takeStep(step: Step, scene: Scene): Promise<string | undefined> {
  if (step.kind === 'sign_in' || step.kind === 'compare') return describe(step, scene)
  const { api, credentials } = scene
  const credential = credentials.get('key' in step.by ? step.by.key : step.by.account)
  if (credential === undefined) return undefined
  const { email } = step
  const { idOf } = await readState(scene)
  const params = { member_id: idOf.get(email) ?? 'mem_none' }
  const send = {
    invite: () =>
      api.send(createMember, { credential, body: { email, role: (step as { role: Role }).role } }),
    edit: () => {
      const { role, status } = step as Extract<Step, { kind: 'edit' }>
      return api.send(updateMember, { credential, params, body: { role, status } })
    },
    remove: () => api.send(deleteMember, { credential, params }),
  }
  const { status, body } = await send[step.kind]()
  forgetCredentials(api)
  return status < 300 ? String(status) : `${status} ${body.error.code}`
}

/** What this process knows of credentials is older than the change until it is told. */
const forgetCredentials = ({ house }: Api) => {
  for (const { onGap } of house.access.subscribers) onGap()
}

/** As a sign-in does it once the provider's answer is verified, or the comparison of every fifteen minutes. */
async function describe(
  { kind, said }: Extract<Step, { said: Said }>,
  { api, organizationId, createsMembers, credentials, memberOf }: Scene,
): Promise<string> {
  const { house } = api
  const provider = providerOf(organizationId)
  const settings = { providers: [provider], createsMembers }
  const { account, email, isVerified, groups, lacksGroups } = said
  const identity = {
    subject: account,
    email,
    isEmailVerified: isVerified,
    name: null,
    groups,
    lacksGroups,
    appRoles: [],
    domain: null,
  }
  const now = house.now()
  const wanted = { organizationId, enters: kind === 'sign_in' }
  const deps = { announce: house.announce, now, by: gatehouse }
  const described = describeMapped(settings, provider, identity)
  const review: Review = await transact(house.db, (tx) =>
    reviewMembership(tx, wanted, described, deps),
  )
  if (review.refusal === null && review.memberId !== null && wanted.enters) {
    const owner = { organizationId, memberId: review.memberId }
    const start = { owner, form: 'token', method: 'corp', requestId: null, now } as const
    const { sessionMaxMs } = house.access
    const started = await transact(house.db, (tx) =>
      startSession(tx, start, { ...house, sessionMaxMs }),
    )
    if (!started) return 'no session'
    credentials.set(account, started.token)
    memberOf.set(account, review.memberId)
  }
  forgetCredentials(api)
  return review.refusal ?? 'admitted'
}
