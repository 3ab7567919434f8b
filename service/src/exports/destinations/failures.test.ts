import {
  type SinkConfig,
  sinkConfigs,
  type SinkType,
  sinkTypes,
} from '@gatehouse/contract/exports/sink-config'
import { expect, test } from 'vitest'

import { EgressBlocked } from '#platform/egress-target.ts'
import { EgressFailed } from '#platform/egress.ts'

import type { DestinationDeps, DestinationType, Outcome } from './destination.ts'
import { createDestinations } from './destinations.ts'
import { outcomeForSink } from './outcome-for-sink.ts'
import { createItem } from './testing/records.ts'

const destinations = createDestinations()
const endpoint = 'https://logs.example.com/path/'
const place = { bucket: 'audit', region: 'eu-central-1', endpoint }
const rule = { dcr_immutable_id: 'dcr-1', stream_name: 'Custom-A', tenant_id: 't', endpoint }
const secret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`
const configs: Record<SinkType, object> = {
  splunk_hec: { endpoint, token: 'hec-token-1' },
  datadog_logs: { endpoint, api_key: 'datadog-key-1' },
  elastic: { endpoint, api_key: 'a2V5' },
  s3: { ...place, access_key_id: 'AKIA1', secret_access_key: 's3-secret-1' },
  azure_monitor: { ...rule, client_id: 'client-1', client_secret: 'azure-secret-1' },
  otlp_logs: { endpoint },
  webhook: { endpoint, secret },
}
const batch = [createItem(1)]

function sendWith(type: SinkType, deps: DestinationDeps): Promise<Outcome> {
  const destination = destinations[type] as DestinationType<SinkConfig>
  const config = sinkConfigs[type].parse(configs[type])
  return outcomeForSink(destination.send(config, batch, deps), { type, config })
}

const failing = (error: Error): DestinationDeps => ({
  request: () => Promise.reject(error),
  now: () => new Date(),
  signal: new AbortController().signal,
})

test.each(sinkTypes)('%s explains a call that failed', async (type) => {
  const send = (deps: DestinationDeps) => sendWith(type, deps)
  const away = new EgressFailed('The destination refused the connection.')
  expect(await send(failing(away))).toEqual({ kind: 'failed', error: away.message })
  const untrusted = new EgressFailed('Not accepted.', { isCertificate: true })
  const misconfigured = { kind: 'misconfigured' }
  expect(await send(failing(untrusted))).toEqual({ ...misconfigured, error: 'Not accepted.' })
  const blocked = new EgressBlocked('The port is not one of 443.')
  expect(await send(failing(blocked))).toEqual({ ...misconfigured, error: blocked.reason })
})
