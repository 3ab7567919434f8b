import type { DeliveryOutcome } from '#exports/destinations/destination.ts'
import { oneLine } from '#exports/destinations/one-line.ts'

/**
 * The codes of an HTTP Event Collector that say more than the status. Several of them come with 400, which would otherwise
 * mean that an event is at fault: an index that the token may not write to would make a dead letter of every event.
 *
 * `invalid-event-number` is not used to find the event: what is said about it differs (whether it counts from 0 or 1), and
 * nothing says that the events before it are stored. Halving the batch finds the event without that.
 */
const meanings: Readonly<
  Record<number, { kind: 'failed' | 'misconfigured' | 'refused'; advice?: string }>
> = {
  1: { kind: 'misconfigured' }, // token disabled
  2: { kind: 'misconfigured' }, // token is required
  3: { kind: 'misconfigured' }, // invalid authorization
  4: { kind: 'misconfigured' }, // invalid token
  5: { kind: 'refused' }, // no data
  6: { kind: 'refused' }, // invalid data format
  7: { kind: 'misconfigured', advice: 'The token may not write to this index.' },
  10: { kind: 'misconfigured', advice: 'The token wants acknowledgements: switch `ack` on.' }, // channel missing
  11: { kind: 'misconfigured' }, // invalid data channel
  12: { kind: 'refused' }, // event field is required
  13: { kind: 'refused' }, // event field is blank
  14: { kind: 'misconfigured', advice: 'The token has no acknowledgements: switch `ack` off.' },
  15: { kind: 'refused' }, // error in handling indexed fields
  16: { kind: 'misconfigured' }, // the token must not be in the address
}

/** What a code means. Undefined for busy (9), internal errors (8) and those that are not known: the status says it. */
export function explainCode(code: unknown, detail: string): DeliveryOutcome | undefined {
  const meaning = typeof code === 'number' ? meanings[code] : undefined
  if (!meaning) return undefined
  const advice = meaning.advice ? ` ${meaning.advice}` : ''
  return { kind: meaning.kind, error: `Splunk answered: ${oneLine(detail, 300)}.${advice}` }
}
