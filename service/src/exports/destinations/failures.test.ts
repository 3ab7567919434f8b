import {
  type SinkConfig,
  sinkConfigs,
  type SinkType,
  sinkTypes,
} from '@gatehouse/contract/exports/sink-config'
import { expect, test } from 'vitest'

import { EgressBlocked } from '#platform/egress-target.ts'
import { EgressFailed } from '#platform/egress.ts'

import type { DestinationDeps, DestinationType, DeliveryOutcome } from './destination.ts'
import { createDestinations } from './destinations.ts'
import { outcomeForSink } from './outcome-for-sink.ts'
import { configsAt } from './testing/configs.ts'
import { createItem } from './testing/records.ts'

const destinations = createDestinations()
const configs = configsAt('https://logs.example.com/path/')
const batch = [createItem(1)]

function sendWith(type: SinkType, deps: DestinationDeps): Promise<DeliveryOutcome> {
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
