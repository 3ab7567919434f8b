import { createHash, randomBytes } from 'node:crypto'

import type { SinkConfig, SinkType } from '@gatehouse/contract/exports/sink-config'

import type {
  DestinationDeps,
  DestinationType,
  ExportRecord,
  DeliveryOutcome,
} from '#exports/destinations/destination.ts'
import type { Destinations } from '#exports/destinations/destinations.ts'
import { outcomeForSink } from '#exports/destinations/outcome-for-sink.ts'
import { portsOf } from '#exports/destinations/ports.ts'
import type { Clock } from '#platform/clock.ts'
import { createUuid } from '#platform/id.ts'

type TestedSink = {
  id: string
  organizationId: string
  type: SinkType
  config: SinkConfig
}

/** Sends one synthetic event to the destination of a sink. */
export type SendTest = (sink: TestedSink) => Promise<{ delivered: boolean; error: string | null }>

type Deps = { destinations: Destinations; request: DestinationDeps['request']; now: Clock }

/** Less than a call of the API may take. */
const testMaxMs = 15_000

export function createTestSender({ destinations, request, now }: Deps): SendTest {
  return async (sink) => {
    const destination = destinations[sink.type] as DestinationType<SinkConfig>
    const record = syntheticRecord(sink, now())
    const batch = [{ record, json: JSON.stringify(record) }]
    const signal = AbortSignal.timeout(testMaxMs)
    const deps: DestinationDeps = {
      request: (address, call) => request(address, { ...call, ports: portsOf[sink.type], signal }),
      now,
      signal,
    }
    const sending = destination.send(sink.config, batch, deps)
    const error = errorOf(await outcomeForSink(sending, sink))
    return { delivered: error === null, error }
  }
}

/** Its number is 0, which no event of the log has. */
function syntheticRecord({ id, organizationId }: TestedSink, now: Date): ExportRecord {
  const payload = { message: 'This is a test event: an administrator tried this export sink.' }
  const salt = randomBytes(16)
  return {
    event_id: createUuid(now),
    event_type: 'test',
    source: 'policy_gateway',
    created_at: now.toISOString(),
    org_id: organizationId,
    org_seq: 0,
    object: 'policy_gateway.export',
    object_id: id,
    payload,
    payload_hash: createHash('sha256').update(salt).update(JSON.stringify(payload)).digest('hex'),
    payload_salt: salt.toString('hex'),
  }
}

function errorOf(outcome: DeliveryOutcome): string | null {
  if (outcome.kind === 'delivered') return null
  if (outcome.kind !== 'itemised') return outcome.error
  const [item] = outcome.items
  if (!item) return 'The destination did not say what became of the event.'
  return item.kind === 'delivered' ? null : item.error
}
