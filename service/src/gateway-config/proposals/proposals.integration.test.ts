import { deleteMember, updateMember } from '@gatehouse/contract/members/member'
import { defaultGatewayConfig } from '@gatehouse/contract/policy-gateway/config'
import {
  listGatewayHistory,
  readGatewayConfig,
  restoreGatewayRevision,
  saveGatewayConfig,
} from '@gatehouse/contract/policy-gateway/gateway'
import {
  createGuardrail,
  deleteGuardrail,
  listGuardrails,
  updateGuardrail,
} from '@gatehouse/contract/policy-gateway/guardrails'
import {
  approveGatewayProposal,
  createGatewayProposal,
  listGatewayProposals,
  type GatewayProposal,
  retrieveGatewayProposal,
  withdrawGatewayProposal,
} from '@gatehouse/contract/policy-gateway/proposals'
import type { Role } from '@gatehouse/contract/role'
import { expect, test } from 'vitest'

import { breakEverywhere } from '#testing/faults/break-everywhere.ts'
import { createMemberSession } from '#testing/member-session.ts'
import { createTestApi } from '#testing/test-api.ts'

type Api = Awaited<ReturnType<typeof createTestApi>>
type Person = Awaited<ReturnType<typeof createMemberSession>>

const canary = `whsec_${Buffer.from('canary-proposal-51d0-secret-bytes').toString('base64')}`
const wanted = {
  name: 'House',
  url: 'https://guard.example.com/check',
  secret: canary,
  mode: 'enforcing',
} as const

async function open(options: Parameters<typeof createTestApi>[0] = {}) {
  const api = await createTestApi({ findAddresses: async () => ['93.184.216.34'], ...options })
  const { organizationId } = api.organization
  const join = (role: Role = 'policy_publisher') =>
    createMemberSession(api.house, { organizationId, role })
  await api.db
    .updateTable('organization')
    .set({ publish_requires_approval: true })
    .where('id', '=', organizationId)
    .execute()
  return { api, join, ...(await calls(api)) }
}

async function calls(api: Api) {
  const as = (person: Person | null) => (person ? { credential: person.token } : {})
  const statusOf = ({ status, body }: Awaited<ReturnType<Api['send']>>) => [
    status,
    body.error?.code,
  ]
  const propose = async (person: Person | null, body: object) => {
    const answer = await api.send(createGatewayProposal, { ...as(person), body })
    expect(statusOf(answer)).toEqual([201, undefined])
    return (answer.body as unknown as { proposal: GatewayProposal }).proposal
  }
  const decide = async (
    endpoint: typeof approveGatewayProposal | typeof withdrawGatewayProposal,
    person: Person | null,
    { id }: { id: string },
  ) => statusOf(await api.send(endpoint, { ...as(person), params: { proposal_id: id } }))
  const config = async () =>
    (await api.send(readGatewayConfig)).body as unknown as {
      revision: number
      config: { name: string }
    }
  const guardrails = async () =>
    (await api.send(listGuardrails)).body.data as unknown as { id: string; mode: string }[]
  return {
    as,
    statusOf,
    propose,
    approve: decide.bind(null, approveGatewayProposal),
    withdraw: decide.bind(null, withdrawGatewayProposal),
    config,
    guardrails,
  }
}

const named = (name: string) => ({ config: { ...defaultGatewayConfig(), name } })

test('saving waits for a proposal that another member approves', async () => {
  const { api, join, as, statusOf, propose, approve, config } = await open()
  const [a, b] = [await join(), await join()]
  for (const person of [a, null]) {
    const answer = await api.send(saveGatewayConfig, { ...as(person), body: named('Alone') })
    expect(statusOf(answer)).toEqual([409, 'approval_required'])
  }
  const proposal = await propose(a, { ...named('Together'), comment: 'Quarterly review' })
  expect(proposal).toMatchObject({ status: 'open', proposed_by: a.memberId, decided_by: null })
  expect((await config()).revision).toBe(0)
  expect(await approve(a, proposal)).toEqual([403, 'permission_denied'])
  expect(await approve(null, proposal)).toEqual([403, 'permission_denied'])
  expect(await approve(b, proposal)).toEqual([200, undefined])
  expect(await approve(b, proposal)).toEqual([404, 'proposal_not_found'])
  expect(await config()).toMatchObject({ revision: 1, config: { name: 'Together' } })
})

test('a proposal is about what its proposer saw', async () => {
  const { join, propose, approve, withdraw, config } = await open()
  const [a, b] = [await join(), await join()]
  const [first, second] = [await propose(a, named('One')), await propose(a, named('Two'))]
  expect(await approve(b, first)).toEqual([200, undefined])
  expect(await approve(b, second)).toEqual([409, 'approval_outdated'])
  expect(await config()).toMatchObject({ revision: 1, config: { name: 'One' } })
  expect(await withdraw(b, second)).toEqual([200, undefined])
  expect(await withdraw(a, second)).toEqual([404, 'proposal_not_found'])
})

test('restoring waits too, and a proposal of a key needs one member', async () => {
  const { api, join, as, statusOf, propose, approve, config } = await open()
  const [a, b] = [await join(), await join()]
  await approve(b, await propose(a, named('One')))
  await approve(b, await propose(null, named('Two')))
  const { data } = (await api.send(listGatewayHistory)).body
  const history_id = data.at(-1)!.id
  const alone = await api.send(restoreGatewayRevision, { ...as(a), params: { history_id } })
  expect(statusOf(alone)).toEqual([409, 'approval_required'])
  expect(await approve(b, await propose(a, { restore: history_id }))).toEqual([200, undefined])
  expect(await config()).toMatchObject({ revision: 3, config: { name: 'One' } })
})

test('an enforcing guardrail is created, changed and deleted by two; a monitoring one by one', async () => {
  const { api, join, as, statusOf, propose, approve, guardrails } = await open()
  const [a, b] = [await join(), await join()]
  const direct = (body: object) => api.send(createGuardrail, { ...as(a), body })
  expect(statusOf(await direct(wanted))).toEqual([409, 'approval_required'])
  expect((await direct({ ...wanted, name: 'Watching', mode: 'monitoring' })).status).toBe(201)
  const proposal = await propose(a, { new_guardrail: wanted })
  expect(JSON.stringify(proposal)).not.toContain(canary)
  expect(await approve(b, proposal)).toEqual([200, undefined])
  const [watching, enforcing] = await guardrails()
  const change = (id: string, body: object) =>
    api.send(updateGuardrail, { ...as(a), params: { guardrail_id: id }, body })
  expect(statusOf(await change(watching!.id, { mode: 'enforcing' }))[1]).toBe('approval_required')
  expect(statusOf(await change(enforcing!.id, { enabled: false }))[1]).toBe('approval_required')
  expect((await change(watching!.id, { deadline_ms: 900 })).status).toBe(200)
  const moved = { guardrail: { id: enforcing!.id, change: { mode: 'monitoring' } } }
  const outdated = await propose(a, { deleted_guardrail: enforcing!.id })
  expect(await approve(b, await propose(a, moved))).toEqual([200, undefined])
  expect(await approve(b, outdated)).toEqual([409, 'approval_outdated'])
  const remove = { ...as(a), params: { guardrail_id: enforcing!.id } }
  expect((await api.send(deleteGuardrail, remove)).status).toBe(200)
  expect(await approve(b, outdated)).toEqual([409, 'approval_outdated'])
})

test('a proposed secret is sealed, shown nowhere, and gone once the proposal is decided', async () => {
  const { api, join, propose, approve } = await open()
  const [a, b] = [await join(), await join()]
  const { id } = await propose(a, { new_guardrail: wanted })
  const shown = [
    await api.send(listGatewayProposals, { query: { status: 'open' } }),
    await api.send(retrieveGatewayProposal, { params: { proposal_id: id } }),
  ]
  expect(JSON.stringify(shown.map(({ body }) => body))).not.toContain(canary)
  const rows = () => api.db.selectFrom('gateway_proposal').selectAll().execute()
  const events = await api.db.selectFrom('event').select(['header', 'payload']).execute()
  const kept = events.map(({ header, payload }) => JSON.stringify(header) + payload?.toString())
  expect(kept.join('')).not.toContain(canary)
  expect((await rows())[0]?.secret).not.toBe(null)
  await approve(b, { id })
  expect((await rows())[0]?.secret).toBe(null)
})

test('an owner breaks the glass for configuration and guardrails', async () => {
  const { api, join, as, statusOf } = await open()
  const [owner, admin] = [await join('owner'), await join('admin')]
  const glass = { break_glass: true, reason: 'Customer data is leaving.' }
  const save = (person: Person) =>
    api.send(saveGatewayConfig, { ...as(person), body: { ...named('Now'), ...glass } })
  expect(statusOf(await save(admin))).toEqual([403, 'permission_denied'])
  expect(statusOf(await save(owner))).toEqual([200, undefined])
  const made = await api.send(createGuardrail, { ...as(owner), body: { ...wanted, ...glass } })
  expect(statusOf(made)).toEqual([201, undefined])
  const { id } = (made.body as unknown as { guardrail: { id: string } }).guardrail
  const sent = { ...as(owner), params: { guardrail_id: id } }
  expect((await api.send(deleteGuardrail, sent)).status).toBe(409)
  const query = { break_glass: 'true', reason: 'It refuses everything.' }
  expect((await api.send(deleteGuardrail, { ...sent, query })).status).toBe(200)
  const events = await api.db.selectFrom('event').select('header').execute()
  const broken = events.filter(({ header }) => Object(header).action === 'glass_broken')
  expect(broken).toHaveLength(3)
})

test('409: an organization has at most 50 open proposals', async () => {
  const { api, join, as, statusOf, propose } = await open()
  const a = await join()
  for (let index = 0; index < 50; index++) await propose(a, named(`Draft ${index}`))
  const more = await api.send(createGatewayProposal, { ...as(a), body: named('One more') })
  expect(statusOf(more)).toEqual([409, 'limit_reached'])
})

test('broken before any statement of an approval: the change and the decision, or neither', async () => {
  const { api, join, propose, as, config } = await open({ tapped: true })
  const [a, b] = [await join(), await join()]
  let round = 0
  const statements = await breakEverywhere(api, {
    async prepare() {
      const before = await config()
      const proposal = await propose(a, named(`Round ${++round}`))
      return { proposal, before }
    },
    attempt: async ({ proposal: { id } }) =>
      (await api.send(approveGatewayProposal, { ...as(b), params: { proposal_id: id } })).status,
    async check({ proposal: { id }, before }, outcome) {
      const { rows } = await api.db
        .selectFrom('gateway_proposal')
        .select('status')
        .where('id', '=', id)
        .execute()
        .then((found) => ({ rows: found }))
      const isNew = outcome === 'new'
      expect(rows[0]?.status).toBe(isNew ? 'approved' : 'open')
      expect((await config()).revision).toBe(before.revision + (isNew ? 1 : 0))
    },
  })
  for (const write of ['gateway_config', 'gateway_history', 'insert into event', 'policy_epoch']) {
    expect(statements.join('\n')).toContain(write)
  }
}, 120_000)

test.each(['removed', 'suspended', 'demoted'])(
  'the proposal of a member who was %s since is not approved',
  async (how) => {
    const { api, join, as, propose, approve, config } = await open()
    const [a, b, owner] = [await join(), await join(), await join('owner')]
    const proposal = await propose(a, named('Alone'))
    const params = { member_id: a.memberId }
    const change = { suspended: { status: 'suspended' }, demoted: { role: 'viewer' } }[how]
    const { status } = change
      ? await api.send(updateMember, { ...as(owner), params, body: change })
      : await api.send(deleteMember, { ...as(owner), params })
    expect(status).toBe(200)
    expect(await approve(b, proposal)).toEqual([409, 'approval_outdated'])
    expect((await config()).revision).toBe(0)
  },
)

test('a member who was demoted a moment ago approves nothing, although the session does not know it yet', async () => {
  const { api, join, as, propose, approve, config } = await open()
  const [a, b] = [await join(), await join()]
  const proposal = await propose(a, named('Alone'))
  await api.send(listGatewayProposals, as(b)) // from now on the session is remembered for some seconds
  await api.db.updateTable('member').set({ role: 'viewer' }).where('id', '=', b.memberId).execute()
  expect(await approve(b, proposal)).toEqual([403, 'permission_denied'])
  expect((await config()).revision).toBe(0)
})

test('an owner who was demoted a moment ago does not break the glass', async () => {
  const { api, join, as, statusOf, config } = await open()
  const owner = await join('owner')
  await api.send(listGatewayProposals, as(owner))
  await api.db
    .updateTable('member')
    .set({ role: 'policy_publisher' })
    .where('id', '=', owner.memberId)
    .execute()
  const body = { ...named('Alone'), break_glass: true, reason: 'Because' }
  const answer = await api.send(saveGatewayConfig, { ...as(owner), body })
  expect(statusOf(answer)).toEqual([403, 'permission_denied'])
  expect((await config()).revision).toBe(0)
})
