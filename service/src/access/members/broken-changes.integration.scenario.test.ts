import { deleteMember, updateMember } from '@gatehouse/contract/members/member'
import { expect, test } from 'vitest'

import { breakEverywhere } from '#testing/faults/break-everywhere.ts'
import { createMemberSession } from '#testing/member-session.ts'
import { createTestApi } from '#testing/test-api.ts'

// The connection breaks before every statement of a change of one of two owners. Member, sessions, event and announcement are
// changed together or not at all, and an owner is left, also when the other one then tries the same.

test.each(['demote', 'suspend', 'remove'] as const)(
  'broken before any statement that could %s an owner: all of the change or nothing, and an owner is left',
  async (how) => {
    const api = await createTestApi({ tapped: true })
    const { organizationId } = api.organization

    async function prepare() {
      await api.db.deleteFrom('member').execute()
      const signIn = () => createMemberSession(api.house, { organizationId, role: 'owner' })
      const [by, of] = [await signIn(), await signIn()]
      // So that its credential needs no look in the database any more.
      await act(by, 'mem_none')
      return { by, of, ...(await countTraces()) }
    }
    type State = Awaited<ReturnType<typeof prepare>>

    const act = async ({ token: credential }: State['by'], id: string) => {
      const sent = { credential, params: { member_id: id } }
      if (how === 'remove') return (await api.send(deleteMember, sent)).status
      const body = how === 'demote' ? { role: 'viewer' } : { status: 'suspended' }
      return (await api.send(updateMember, { ...sent, body })).status
    }

    async function countTraces() {
      const events = await api.db.selectFrom('event').select('header').execute()
      const ofMembers = events.filter(
        ({ header }) => (header as { object?: string }).object === 'organization.member',
      )
      const changes = await api.db
        .selectFrom('config_change')
        .select('object_id')
        .where('kind', '=', 'member')
        .execute()
      return { events: ofMembers.length, changes: changes.length }
    }

    const readOwners = async () => {
      const rows = await api.db
        .selectFrom('member')
        .select('id')
        .where('role', '=', 'owner')
        .where('status', '=', 'active')
        .execute()
      return rows.map(({ id }) => id).toSorted()
    }

    async function check({ by, of, events, changes }: State, outcome: 'old' | 'new') {
      const isNew = outcome === 'new'
      const both = [by.memberId, of.memberId].toSorted()
      expect(await readOwners()).toEqual(isNew ? [by.memberId] : both)
      const more = isNew ? 1 : 0
      expect(await countTraces()).toEqual({ events: events + more, changes: changes + more })
      const open = await api.db
        .selectFrom('session')
        .select('id')
        .where('member_id', '=', of.memberId)
        .where('ended_at', 'is', null)
        .execute()
      expect(open).toHaveLength(isNew && how !== 'demote' ? 0 : 1)
      // The owner who is left cannot do the same to itself; one of two can.
      expect(await act(by, by.memberId)).toBe(isNew ? 409 : 200)
      expect(await readOwners()).toHaveLength(1)
    }

    const statements = await breakEverywhere(api, {
      prepare,
      attempt: ({ by, of }) => act(by, of.memberId),
      check,
    })
    const text = statements.join('\n')
    const write = how === 'remove' ? 'delete from "member"' : 'update "member"'
    for (const each of ['for no key update', write, 'insert into event', 'config_change']) {
      expect(text).toContain(each)
    }
    if (how === 'suspend') expect(text).toContain('update "session"')
  },
  180_000,
)
