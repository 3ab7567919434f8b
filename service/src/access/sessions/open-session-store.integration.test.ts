import { randomBytes } from 'node:crypto'

import { sql } from 'kysely'
import { expect, test } from 'vitest'

import type { House } from '#assemble.ts'
import { transact } from '#platform/transaction.ts'
import { sweepTables } from '#sweep-tables.ts'
import { createMemberSession } from '#testing/member-session.ts'
import { createTestApi } from '#testing/test-api.ts'

import { sweepSessions } from './open-session-store.ts'

const hourMs = 3_600_000

async function start() {
  const api = await createTestApi()
  const { house, organization } = api
  const { organizationId } = organization
  const { memberId, sessionId } = await createMemberSession(house, {
    organizationId,
    role: 'owner',
  })
  /** A session that expired, and perhaps was ended, this number of hours ago. */
  async function insert(id: string, expired: number, ended: number | null = null) {
    const at = (hours: number) => new Date(house.now().getTime() - hours * hourMs)
    const started = at(expired + 8)
    await house.db
      .insertInto('session')
      .values({
        organization_id: organizationId,
        id,
        member_id: memberId,
        form: 'browser',
        method: 'entra',
        secret_hash: randomBytes(32),
        created_at: started,
        last_seen_at: started,
        expires_at: at(expired),
        ended_at: ended === null ? null : at(ended),
      })
      .execute()
    await house.db
      .insertInto('provider_session')
      .values({
        organization_id: organizationId,
        session_id: id,
        issuer: 'https://idp.example.com',
        subject: 'ada',
        checked_at: started,
      })
      .execute()
  }
  const listIds = async (table: 'session' | 'provider_session' = 'session') => {
    const name = table === 'session' ? 'id' : 'session_id'
    const { rows } = await sql<{ id: string }>`
      select ${sql.ref(name)} as id from ${sql.table(table)} order by id`.execute(house.db)
    return rows.map(({ id }) => id).filter((id) => id !== sessionId)
  }
  const sweep = (limit = 500) =>
    transact(house.db, (tx) =>
      sweepSessions(tx, new Date(house.now().getTime() - 24 * hourMs), limit),
    )
  return { ...api, insert, listIds, sweep, sessionId }
}

/** One pass of the worker, without its rests. */
const pass = (house: House) =>
  sweepTables(house, { rest: async () => {}, signal: new AbortController().signal })

test('the worker removes a session a day after its end, with what its provider was asked', async () => {
  const { house, insert, listIds, db, sessionId } = await start()
  await insert('ses_1_expired_long_ago', 25)
  await insert('ses_2_expired', 23)
  await insert('ses_3_ended_long_ago', -1, 25)
  await insert('ses_4_ended', -1, 23)
  await insert('ses_5_open', -7)
  await insert('ses_6_ended_after_it_had_expired', 25, 1)
  await pass(house)
  const kept = ['ses_2_expired', 'ses_4_ended', 'ses_5_open']
  expect(await listIds()).toEqual(kept)
  expect(await listIds('provider_session')).toEqual(kept)
  const own = await db
    .selectFrom('session')
    .select('ended_at')
    .where('id', '=', sessionId)
    .execute()
  expect(own).toEqual([{ ended_at: null }])
})

test('a thousand ended sessions are removed in batches, by several workers at once', async () => {
  const { house, insert, listIds, sweep } = await start()
  for (let number = 0; number < 1000; number++) await insert(`ses_${number}`, 25)
  expect(await sweep(100)).toBe(100)
  expect(await listIds()).toHaveLength(900)
  await Promise.all([pass(house), pass(house), pass(house)])
  expect(await listIds()).toEqual([])
  expect(await sweep()).toBe(0)
})

test('a session that another transaction holds is passed over, and removed by the next pass', async () => {
  const { house, insert, listIds, sweep } = await start()
  await insert('ses_1', 25)
  await insert('ses_2', 25)
  await transact(house.db, async (tx) => {
    await sql`select 1 from session where id = 'ses_1' for key share`.execute(tx)
    expect(await sweep()).toBe(1)
  })
  expect(await listIds()).toEqual(['ses_1'])
  expect(await sweep()).toBe(1)
})
