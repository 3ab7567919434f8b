import { createProjectApiKey } from '@gatehouse/contract/api-key'
import { createClient } from '@gatehouse/contract/client'
import { deleteMember, updateMember } from '@gatehouse/contract/members/member'
import { deleteProjectMember, setProjectMember } from '@gatehouse/contract/members/project-member'
import { listModels } from '@gatehouse/contract/model'
import { type Stack, startStack } from '@gatehouse/tools/start-stack'
import { startThrowawayRedis, type ThrowawayRedis } from '@gatehouse/tools/throwaway-redis'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { type Poller, startDatabasePoller } from './support/baseline/poller.ts'
import { type Delay, describeDelays, untilStatus } from './support/baseline/until-status.ts'
import { call } from './support/call.ts'
import { hardlyLimited } from './support/hardly-limited.ts'

// The own key of a person who is suspended, leaves the project or leaves the organization through one process is refused by
// another within 5 seconds: with hints, and by polling alone once Redis has been stopped. As in revocation.test.ts, the bound
// is five polls.

const tries = 50
const atOnce = 25
const pollsMax = 5

const limits = hardlyLimited()
let redis: ThrowawayRedis
let stack: Stack
let poller: Poller
let database: pg.Pool
let client: ReturnType<typeof createClient>
beforeAll(async () => {
  redis = await startThrowawayRedis()
  stack = await startStack({
    models: null,
    processes: 2,
    redis: redis.url,
    environment: limits,
  })
  poller = await startDatabasePoller(stack.database.url)
  database = new pg.Pool({ connectionString: stack.database.url, max: 2 })
  const { base_urls, admin_key } = stack.description
  client = createClient({ baseUrl: base_urls[0] ?? '', credential: admin_key })
})
afterAll(async () => {
  await database.end()
  await poller.stop()
  await stack.stop()
  await redis.stop()
})

type Person = { member_id: string; project_id: string }

const endings: readonly ((person: Person) => Promise<unknown>)[] = [
  ({ member_id }) =>
    client.call(updateMember, { params: { member_id }, body: { status: 'suspended' } }),
  (params) => client.call(deleteProjectMember, { params }),
  ({ member_id }) => client.call(deleteMember, { params: { member_id } }),
]

/** A person who has signed in and made a key in the project. Signing in is not what this is about, so both are written as rows. */
async function createPerson(number: number): Promise<Person & { value: string }> {
  const { organization_id, project_id } = stack.description
  const member_id = `mem_${String(number).padStart(24, '0')}`
  await database.query(
    `insert into member (organization_id, id, email, name, role, status, created_at)
     values ($1, $2, $2 || '@example.com', 'Ada', 'developer', 'active', now())`,
    [organization_id, member_id],
  )
  const params = { project_id, member_id }
  await client.call(setProjectMember, { params, body: { role: 'project_member' } })
  const body = { name: 'Own' }
  const key = await client.call(createProjectApiKey, { params: { project_id }, body })
  await database.query('update api_key set member_id = $1 where id = $2', [member_id, key.id])
  return { ...params, value: key.value }
}

let created = 0

/** How long the second process keeps accepting a key after the first has answered the change of its owner. */
async function endAndMeasure(): Promise<Delay> {
  const number = created++
  const person = await createPerson(number)
  const there = stack.description.base_urls[1] ?? ''
  const use = () => call(there, listModels, { credential: person.value })
  expect((await use()).status).toBe(200) // the second process has cached the key now
  await endings[number % endings.length]!(person)
  const delay = await untilStatus(401, use, poller)
  expect((await use()).json).toMatchObject({ error: { code: 'revoked_api_key' } })
  return delay
}

async function measureAll(how: string) {
  const delays: Delay[] = []
  while (delays.length < tries) {
    delays.push(...(await Promise.all(Array.from({ length: atOnce }, endAndMeasure))))
  }
  console.log(`own keys ended ${how}: ${describeDelays(delays)}`)
  return delays.filter(({ polls }) => polls <= pollsMax)
}

test(`with hints: all ${tries} own keys stop within ${pollsMax} polls`, async () => {
  expect(await measureAll('with hints')).toHaveLength(tries)
})

test(`with Redis stopped: all ${tries} own keys stop within ${pollsMax} polls`, async () => {
  await redis.stop()
  expect(await measureAll('by polling alone')).toHaveLength(tries)
})
