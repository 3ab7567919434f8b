import { sinkConfigs, type SinkType } from '@gatehouse/contract/exports/sink-config'
import { expect, test } from 'vitest'

import type { DestinationType } from './destination.ts'
import { createDestinations } from './destinations.ts'

const destinations = createDestinations()

function addressOf(type: keyof typeof destinations, config: object) {
  const read = sinkConfigs[type as SinkType].parse(config)
  return (destinations[type] as DestinationType<unknown>).addressOf(read)
}
const secret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`

test.each([
  [
    'splunk_hec',
    { endpoint: 'https://s.example.com:8088', token: 't' },
    'https://s.example.com:8088/services/collector/event',
  ],
  [
    'splunk_hec',
    { endpoint: 'https://s.example.com/a/services/collector', token: 't' },
    'https://s.example.com/a/services/collector',
  ],
  ['datadog_logs', { api_key: 'k' }, 'https://http-intake.logs.datadoghq.com/api/v2/logs'],
  [
    'datadog_logs',
    { api_key: 'k', site: 'us3.datadoghq.com' },
    'https://http-intake.logs.us3.datadoghq.com/api/v2/logs',
  ],
  [
    'datadog_logs',
    { api_key: 'k', endpoint: 'https://d.example.com/' },
    'https://d.example.com/api/v2/logs',
  ],
  [
    'otlp_logs',
    { endpoint: 'https://o.example.com?tenant=1' },
    'https://o.example.com/v1/logs?tenant=1',
  ],
  [
    'otlp_logs',
    { endpoint: 'https://o.example.com/otlp/v1/logs' },
    'https://o.example.com/otlp/v1/logs',
  ],
  [
    's3',
    { bucket: 'audit', region: 'eu-central-1', access_key_id: 'a', secret_access_key: 'b' },
    'https://audit.s3.eu-central-1.amazonaws.com/',
  ],
  [
    's3',
    { bucket: 'audit.logs', region: 'eu-central-1', access_key_id: 'a', secret_access_key: 'b' },
    'https://s3.eu-central-1.amazonaws.com/',
  ],
  ['webhook', { endpoint: 'https://w.example.com', secret }, 'https://w.example.com'],
  ['webhook', { endpoint: 'https://', secret }, 'https://'],
] as const)('%s with %j leads to %s', (type, config, address) => {
  expect(addressOf(type, config)).toBe(address)
})

test('no batch of events is larger than a thousand events or a megabyte; objects are', () => {
  const { s3: _, ...others } = destinations
  for (const { limits } of Object.values(others)) {
    expect(limits.itemsMax).toBeLessThanOrEqual(1000)
    expect(limits.bytesMax).toBeLessThanOrEqual(1_000_000)
  }
})
