import { createAdminApiKey } from '@gatehouse/contract/api-key'
import { type Processes, readProcesses } from '@gatehouse/contract/organization/processes'
import { createPolicy, publishPolicy } from '@gatehouse/contract/policy'
import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { createTestApi } from '#testing/test-api.ts'

type Api = Awaited<ReturnType<typeof createTestApi>>

async function read({ send }: Api, credential?: string) {
  const answer = await send(readProcesses, credential === undefined ? {} : { credential })
  return { ...answer, body: answer.body as unknown as Processes }
}

/** Processes of a test's own, beside that of the API. */
const add = ({ db }: Api, id: string, seconds: number, facts = "'1.0', true, false") =>
  sql`insert into api_process (id, started_at, seen_at, applied, failures, release, is_ready, counts_locally)
    values (${id}::uuid, now() + interval '1 minute', now() - make_interval(secs => ${seconds}), pg_current_snapshot(),
      '{"org_other": 3}', ${sql.raw(facts)})`.execute(db)

test('200: this process, its state of the policies, and nothing of other organizations', async () => {
  const api = await createTestApi()
  api.house.self.isReady = true
  const policy = { name: 'P', rule: 'cel: text.contains("x")', direction: 'request' }
  const made = await api.send(createPolicy, { body: policy })
  const params = { policy_id: made.body.id }
  const published = await api.send(publishPolicy, { params, body: { revision: 1 } })
  expect(published.status).toBe(200)
  await expect
    .poll(async () => (await read(api)).body.data[0], { timeout: 10_000 })
    .toMatchObject({
      release: expect.stringMatching(/^\d+\.\d+\.\d+$/) as string,
      last_seen_at: null,
      is_ready: true,
      is_counting_locally: false,
      policy_epoch: 1,
      is_failed: false,
    })
  expect(JSON.stringify((await read(api)).body)).not.toContain('org_')
})

test('200: live, silent and earlier processes; none that has long been silent', async () => {
  const api = await createTestApi()
  await add(api, '11111111-0000-4000-8000-000000000000', 0, "'1.0', false, true")
  await add(api, '22222222-0000-4000-8000-000000000000', 60)
  await add(api, '33333333-0000-4000-8000-000000000000', 5, 'null, null, null')
  await add(api, '44444444-0000-4000-8000-000000000000', 700)
  const { body } = await read(api)
  const told = body.data
    .filter(({ id }) => /^(\d)\1+$/.test(id))
    .toSorted((one, other) => one.id.localeCompare(other.id))
  expect(told.map((each) => [each.id[0], each.last_seen_at === null, each.is_ready])).toEqual([
    ['1', true, false],
    ['2', false, true],
    ['3', true, null],
  ])
  expect(told[0]).toMatchObject({ is_counting_locally: true, is_failed: false })
})

test('403 without policies.read', async () => {
  const api = await createTestApi()
  const body = { name: 'Narrow', permissions: ['credits.read'] }
  const { value } = (await api.send(createAdminApiKey, { body })).body
  expect((await read(api, value)).status).toBe(403)
})
