import {
  secretMembers,
  type SinkConfig,
  type SinkType,
} from '@gatehouse/contract/exports/sink-config'

import type { DeliveryOutcome } from './destination.ts'
import { oneLine } from './one-line.ts'
import { outcomeOfError } from './outcome.ts'
import { withoutSinkSecrets } from './without-secrets.ts'

const errorMax = 500

type ConfiguredSink = { type: SinkType; config: SinkConfig }

/** How sending ended, with errors as they are kept and shown with the sink. Never throws. */
export async function outcomeForSink(
  sending: Promise<DeliveryOutcome>,
  sink: ConfiguredSink,
): Promise<DeliveryOutcome> {
  return cleanOutcome(await sending.catch(outcomeOfError), sink)
}

/** Whatever a destination put into an error, it is one line of at most 500 characters without the secrets of the configuration. */
function cleanOutcome(outcome: DeliveryOutcome, { type, config }: ConfiguredSink): DeliveryOutcome {
  const secrets = secretMembers[type].map((name) => {
    const value = (config as Record<string, unknown>)[name]
    return typeof value === 'string' ? value : undefined
  })
  const clean = <E extends object>(each: E): E =>
    'error' in each
      ? { ...each, error: oneLine(withoutSinkSecrets(String(each.error), secrets), errorMax) }
      : each
  return outcome.kind === 'itemised'
    ? { ...outcome, items: outcome.items.map(clean) }
    : clean(outcome)
}
