import { expect, test } from 'vitest'

import { createTestApi } from '#testing/test-api.ts'

import { sinkCalls, splunk, token } from './testing/sink-calls.ts'

// Where sinks may lead to, as it is checked when they are saved. What the delivery calls is checked again (platform/egress.ts).

const words = (text: string) => text.trim().split(/\s+/)

const refused = [
  ...words(`http://sink.example.com ftp://sink.example.com sink.example.com https://
    https://user:pass@sink.example.com https://sink.example.com:22 https://sink.example.com:8443
    https://127.0.0.1 https://127.1 https://2130706433 https://0x7f.1 https://017700000001 https://①②⑦.0.0.1
    https://127。0。0。1 https://%31%32%37.0.0.1 https://0.0.0.0 https://8.8.8.8 https://10.0.0.1:9200
    https://169.254.169.254/latest/meta-data https://168.63.129.16 https://[::1] https://[::ffff:127.0.0.1]
    https://[64:ff9b::7f00:1] https://[fd00:ec2::254] https://localhost https://localhost. https://a.localhost
    https://printer.local https://metadata.google.internal https://db.internal https://kubernetes.default.svc
    https://wiki.corp https://nas.lan https://metadata https://sink.example.com. https://a_b.example.com`),
  'https://sink.example.com\\@127.0.0.1',
  'https://sink.exam ple.com',
]

const resolved: Record<string, string[]> = {
  'public.example.com': ['93.184.216.34'],
  'loopback.example.com': ['127.0.0.1'],
  'metadata.example.com': ['169.254.169.254'],
  'mixed.example.com': ['93.184.216.34', '10.0.0.1'],
  'shared.example.com': ['100.64.0.1'],
  'six.example.com': ['::1'],
  'mapped.example.com': ['::ffff:10.0.0.1'],
  'listed.example.com': ['10.0.0.5'],
}

async function findAddresses(host: string) {
  if (host === 'slow.example.com') throw new Error('queryA ETIMEOUT')
  return resolved[host] ?? []
}

async function openApi(environment: Record<string, string> = {}) {
  return sinkCalls(await createTestApi({ environment, findAddresses }))
}
const at = (endpoint: string) => ({ type: 'splunk_hec', config: { endpoint, token } })

test('422: addresses that must not be called are refused when they are saved', async () => {
  const calls = await openApi()
  const { id } = (await calls.create(splunk)).export
  for (const endpoint of refused) {
    const answers = [await calls.create(at(endpoint)), await calls.edit(id, at(endpoint))]
    for (const { status, error } of answers) {
      expect([endpoint, status, error?.code, error?.param]).toEqual([
        endpoint,
        422,
        'invalid_export_config',
        'body.config.endpoint',
      ])
    }
  }
  expect((await calls.list()).data).toHaveLength(1)
})

test('422: names that lead to private addresses; those that are not known are accepted', async () => {
  const calls = await openApi()
  const statusOf = async (host: string) => {
    const { status, error } = await calls.create(at(`https://${host}`))
    return [host, status, error?.code, error?.param]
  }
  const privateHosts = Object.keys(resolved).filter((host) => host !== 'public.example.com')
  for (const host of privateHosts) {
    const expected = [host, 422, 'invalid_export_config', 'body.config.endpoint']
    expect(await statusOf(host)).toEqual(expected)
  }
  for (const host of ['public.example.com', 'missing.example.com', 'slow.example.com']) {
    expect(await statusOf(host)).toEqual([host, 201, undefined, undefined])
  }
})

test('422: an address that follows from other members is checked too', async () => {
  const calls = await openApi()
  resolved['http-intake.logs.evil.example.com'] = ['127.0.0.1']
  const config = { api_key: token, site: 'evil.example.com' }
  const { status, error } = await calls.create({ type: 'datadog_logs', config })
  expect([status, error.param]).toEqual([422, 'body.config.site'])
  const inside = { api_key: token, site: 'metadata.internal' }
  expect((await calls.create({ type: 'datadog_logs', config: inside })).status).toBe(422)
})

test('what the operator lists may be private, and only at that port', async () => {
  const calls = await openApi({
    EXPORT_PRIVATE_TARGETS: 'listed.example.com:8443,10.0.0.9:8088,localhost:9000',
  })
  const statuses: [string, number][] = [
    ['https://listed.example.com:8443', 201],
    ['https://listed.example.com', 422],
    ['https://10.0.0.9:8088', 201],
    ['https://10.0.0.9', 422],
    ['http://localhost:9000', 201],
    ['https://127.0.0.1:9000', 422],
  ]
  for (const [endpoint, status] of statuses) {
    expect([endpoint, (await calls.create(at(endpoint))).status]).toEqual([endpoint, status])
  }
})

test('addresses that the service itself may call are not open to sinks', async () => {
  const calls = await openApi({ EGRESS_PRIVATE_TARGETS: 'listed.example.com:443' })
  expect((await calls.create(at('https://listed.example.com'))).status).toBe(422)
})

test('certificates are ignored only if the operator allows it', async () => {
  const config = { ...splunk.config, verify_tls: false }
  const strict = await openApi()
  const { status, error } = await strict.create({ ...splunk, config })
  expect([status, error.param]).toEqual([422, 'body.config.verify_tls'])
  const lenient = await openApi({ EXPORT_ALLOW_INSECURE_TLS: 'true' })
  expect((await lenient.create({ ...splunk, config })).export.config['verify_tls']).toBe(false)
})
