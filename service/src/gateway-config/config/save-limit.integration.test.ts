import { randomUUID } from 'node:crypto'

import {
  listGatewayHistory,
  readGatewayConfig,
  restoreGatewayRevision,
  saveGatewayConfig,
} from '@gatehouse/contract/policy-gateway/gateway'
import { expect, test } from 'vitest'

import { createOrganization } from '#access/manage-organizations.ts'
import { redisUrl } from '#testing/servers.ts'
import { createTestApi, startAnotherHouse } from '#testing/test-api.ts'

type Api = Awaited<ReturnType<typeof createTestApi>>
const saver = (api: Api, credential?: string) => async (name: string) =>
  api.send(saveGatewayConfig, {
    body: { config: { name } },
    ...(credential !== undefined && { credential }),
  })

test('an organization saves ten times a minute by default, whatever the save is; others are not affected', async () => {
  const api = await createTestApi({
    environment: { GATEWAY_SAVES_PER_MINUTE: '10' },
  })
  const save = saver(api)
  const statuses: number[] = []
  for (let at = 0; at < 8; at++) statuses.push((await save(`Name ${at}`)).status)
  const { body: history } = await api.send(listGatewayHistory)
  const params = { history_id: history.data[3]!.id }
  statuses.push((await api.send(restoreGatewayRevision, { params })).status)
  statuses.push((await save('Last')).status)
  expect(statuses).toEqual(Array.from({ length: 10 }, () => 200))

  const refused = await save('Refused')
  expect([refused.status, refused.body.error]).toEqual([
    429,
    expect.objectContaining({
      code: 'rate_limit_exceeded',
      message: expect.stringMatching(
        /^Rate limit reached for saves of the gateway configuration on organization: limit 10\. Retry after \d+s\.$/,
      ) as string,
    }),
  ])
  expect(refused.headers).toMatchObject({
    'retry-after': expect.stringMatching(/^([1-9]|[1-5]\d|6[01])$/) as string,
    'x-ratelimit-limit': '10',
    'x-ratelimit-remaining': '0',
    'x-ratelimit-reset': expect.stringMatching(/^\d{10}$/) as string,
    'x-ratelimit-scope': 'organization',
    'x-ratelimit-metric': 'requests',
  })
  expect((await api.send(restoreGatewayRevision, { params })).status).toBe(429)
  const read = await api.send(readGatewayConfig)
  expect([read.status, (read.body as unknown as { revision: number }).revision]).toEqual([200, 10])
  const other = await createOrganization('Other Ltd', api.house)
  expect((await saver(api, other.adminKey)('Named')).status).toBe(200)
})

test('a configuration that is not valid does not count', async () => {
  const api = await createTestApi({
    environment: { GATEWAY_SAVES_PER_MINUTE: '1' },
  })
  const { status } = await api.send(saveGatewayConfig, { body: { config: { name: 7 } } })
  expect(status).toBe(422)
  expect((await saver(api)('Named')).status).toBe(200)
  expect((await saver(api)('Again')).status).toBe(429)
})

test('processes count together, also at the same moment', async () => {
  const settings = {
    REDIS_URL: redisUrl,
    REDIS_NAMESPACE: `test-${randomUUID()}`,
    REDIS_DEADLINE_MS: '1000',
    GATEWAY_SAVES_PER_MINUTE: '10',
  }
  const api = await createTestApi({ environment: settings })
  const houses = [api.house, ...[1, 2].map(() => startAnotherHouse(api.house, settings))]
  const countAdmitted = async (organizationId: string, saves: number) => {
    const outcomes = await Promise.allSettled(
      Array.from({ length: saves }, (_, at) =>
        houses[at % houses.length]!.limits.limitGatewaySave(organizationId),
      ),
    )
    return outcomes.filter(({ status }) => status === 'fulfilled').length
  }
  // Until they are connected to Redis, each counts for itself.
  await expect.poll(() => countAdmitted(randomUUID(), 60), { timeout: 20_000 }).toBe(10)
  expect(await countAdmitted(api.organization.organizationId, 60)).toBe(10)
  expect(await countAdmitted(api.organization.organizationId, 3)).toBe(0)
})
