import { beforeEach, expect, test } from 'vitest'

import { transact } from '#platform/transaction.ts'
import { createTestApi } from '#testing/test-api.ts'

import { openSinkConfig } from './open-config.ts'
import { findSink, updateSink } from './sink-store.ts'
import { sealConfig } from './sink.ts'
import { sinkCalls, splunk } from './testing/sink-calls.ts'

let api: Awaited<ReturnType<typeof createTestApi>>
let calls: ReturnType<typeof sinkCalls>
beforeEach(async () => {
  api = await createTestApi()
  calls = sinkCalls(api)
})

const endpoint = 'https://logs.example.com'
const s3 = { bucket: 'audit', region: 'eu-central-1', access_key_id: 'a' }
const azure = {
  endpoint,
  dcr_immutable_id: 'dcr-1',
  stream_name: 'Custom-Audit',
  tenant_id: 't',
  client_id: 'c',
}
const secrets: [type: string, config: object, member: string][] = [
  ['splunk_hec', { endpoint }, 'token'],
  ['datadog_logs', {}, 'api_key'],
  ['elastic', { endpoint }, 'api_key'],
  ['elastic', { endpoint, username: 'me' }, 'password'],
  ['s3', s3, 'secret_access_key'],
  ['azure_monitor', azure, 'client_secret'],
  ['otlp_logs', { endpoint }, 'header_value'],
]

test.each(secrets)(
  'a secret of seven characters is refused, of eight is not: %s',
  async (...each) => {
    const [type, config, member] = each
    for (const short of ['x', '1234567', '1234567 ', '   1   ']) {
      const { status, error } = await calls.create({ type, config: { ...config, [member]: short } })
      expect([short, status, error]).toEqual([
        short,
        422,
        expect.objectContaining({
          code: 'invalid_export_config',
          param: `body.config.${member}`,
          message: `'body.config.${member}' must have at least 8 characters, as every secret.`,
        }),
      ])
    }
    const { status, export: made } = await calls.create({
      type,
      config: { ...config, [member]: '12345678' },
    })
    expect(status).toBe(201)
    const changed = await calls.edit(made.id, { config: { [member]: '1234567' } })
    expect([changed.status, changed.error.param]).toEqual([422, `body.config.${member}`])
  },
)

test('a sink that was saved with a shorter secret still delivers, and can be changed', async () => {
  const { id } = (await calls.create(splunk)).export
  const { organizationId } = api.organization
  const { secretBox } = api.house.mutations
  const sink = (await findSink(api.db, organizationId, id))!
  const old = { ...splunk.config, token: 'short' }
  await transact(api.db, (tx) => updateSink(tx, { ...sink, ...sealConfig(sink, old, secretBox) }))

  const openToken = async () =>
    openSinkConfig((await findSink(api.db, organizationId, id))!, secretBox)
  expect(await openToken()).toMatchObject({ token: 'short' })
  for (const edit of [
    { label: 'Other' },
    { config: { index: 'main' } },
    { config: { token: '********', ack: true } },
    { config: { ...old, index: 'audit' } },
  ]) {
    expect([edit, (await calls.edit(id, edit)).status]).toEqual([edit, 200])
    expect(await openToken()).toMatchObject({ token: 'short' })
  }
  expect((await calls.edit(id, { config: { token: 'other' } })).status).toBe(422)
  expect((await calls.edit(id, { config: { token: 'long-enough' } })).status).toBe(200)
  expect(await openToken()).toMatchObject({ token: 'long-enough' })
})
