import { readMe } from '@gatehouse/contract/members/me'
import { deleteMember, updateMember } from '@gatehouse/contract/members/member'
import { deleteMemberSession, deleteMemberSessions } from '@gatehouse/contract/members/session'
import {
  createOrganization,
  runOperator,
  type Stack,
  startStack,
} from '@gatehouse/tools/start-stack'
import { startThrowawayRedis, type ThrowawayRedis } from '@gatehouse/tools/throwaway-redis'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { type Poller, startDatabasePoller } from './support/baseline/poller.ts'
import { type Delay, describeDelays, untilStatus } from './support/baseline/until-status.ts'
import { call } from './support/call.ts'
import {
  cookieOf,
  type MemberSession,
  openPage,
  ownPage,
  publicUrl,
  readCsrf,
  signInMember,
  signInWithKey,
} from './support/sessions.ts'

// A session that is ended in one process, in whatever way, is refused by another within 5 seconds: with hints, and by polling
// alone once Redis has been stopped. As in revocation.test.ts, the bound is five polls of a bare poller.

const tries = 50
const atOnce = 10
const pollsMax = 5

let redis: ThrowawayRedis
let stack: Stack
let database: pg.Client
let poller: Poller
beforeAll(async () => {
  redis = await startThrowawayRedis()
  const environment = { PUBLIC_URL: publicUrl }
  stack = await startStack({ models: null, processes: 2, redis: redis.url, environment })
  database = new pg.Client({ connectionString: stack.database.url })
  await database.connect()
  poller = await startDatabasePoller(stack.database.url)
})
afterAll(async () => {
  await poller.stop()
  await database.end()
  await stack.stop()
  await redis.stop()
})

const me = (baseUrl: string, secret: string) => call(baseUrl, readMe, { headers: cookieOf(secret) })

type Way = (here: string, session: MemberSession) => Promise<{ status: number }>

const asAdministrator = (here: string, ...[endpoint, sent]: [Parameters<typeof call>[1], object]) =>
  call(here, endpoint, { credential: stack.description.admin_key, ...sent })

/** Every way in which the session of a member ends at once. */
const ways: readonly (readonly [string, Way])[] = [
  [
    'the person signs out',
    async (here, { secret }) => {
      const form = { csrf: await readCsrf(here, secret) }
      return openPage(`${here}/auth/sign_out`, { form, headers: cookieOf(secret) })
    },
  ],
  [
    'another sign-in replaces it in its browser',
    async (here, { secret }) => {
      await signInWithKey(here, stack.description.admin_key, cookieOf(secret))
      return { status: 200 }
    },
  ],
  [
    'the person ends it',
    async (here, { memberId, sessionId, secret }) =>
      call(here, deleteMemberSession, {
        params: { member_id: memberId, session_id: sessionId },
        headers: {
          ...ownPage,
          ...cookieOf(secret),
          'x-gatehouse-csrf': await readCsrf(here, secret),
        },
      }),
  ],
  [
    'an administrator ends all of them',
    (here, { memberId }) =>
      asAdministrator(here, deleteMemberSessions, { params: { member_id: memberId } }),
  ],
  [
    'the member is suspended',
    (here, { memberId }) =>
      asAdministrator(here, updateMember, {
        params: { member_id: memberId },
        body: { status: 'suspended' },
      }),
  ],
  [
    'the member is removed',
    (here, { memberId }) =>
      asAdministrator(here, deleteMember, { params: { member_id: memberId } }),
  ],
]

/** How long the second process takes the session after the first has answered that it has ended. */
async function endAndMeasure(session: MemberSession, [name, end]: (typeof ways)[number]) {
  const [here = '', there = ''] = stack.description.base_urls
  const { secret } = session
  expect((await me(there, secret)).status, name).toBe(200) // the second process has cached it now
  expect([200, 303], name).toContain((await end(here, session)).status)
  return untilStatus(401, () => me(there, secret), poller)
}

async function measureAll(how: string): Promise<Delay[]> {
  const delays: Delay[] = []
  while (delays.length < tries) {
    const sessions: MemberSession[] = []
    while (sessions.length < atOnce) sessions.push(await signInMember(stack, database))
    const measured = sessions.map((session, index) =>
      endAndMeasure(session, ways[(delays.length + index) % ways.length]!),
    )
    delays.push(...(await Promise.all(measured)))
  }
  console.log(`sessions ended ${how}: ${describeDelays(delays)}`)
  return delays
}

test(`with hints: all ${tries} sessions are refused within ${pollsMax} polls`, async () => {
  const delays = await measureAll('with hints')
  expect(delays.filter(({ polls }) => polls <= pollsMax)).toHaveLength(tries)
})

test(`the sessions of a suspended organization are refused within ${pollsMax} polls, and work again when it is reinstated`, async () => {
  const { organization_id, admin_key } = await createOrganization(stack.service, 'Late payer')
  const [here = '', there = ''] = stack.description.base_urls
  const secret = await signInWithKey(here, admin_key)
  expect((await me(there, secret)).status).toBe(200)
  for (const [command, status] of [
    ['suspend', 403],
    ['reinstate', 200],
  ] as const) {
    await runOperator(stack.service, [command, organization_id])
    for (const baseUrl of [here, there]) {
      const { polls } = await untilStatus(status, () => me(baseUrl, secret), poller)
      expect(polls).toBeLessThanOrEqual(pollsMax)
    }
  }
})

test(`with Redis stopped: all ${tries} sessions are refused within ${pollsMax} polls`, async () => {
  await redis.stop()
  const delays = await measureAll('by polling alone')
  expect(delays.filter(({ polls }) => polls <= pollsMax)).toHaveLength(tries)
})
