import { setTimeout as sleep } from 'node:timers/promises'

import type {
  DestinationAnswer,
  DestinationDeps,
  DeliveryOutcome,
} from '#exports/destinations/destination.ts'
import { membersOf, readJsonAnswer } from '#exports/destinations/json-answer.ts'

type Awaited = {
  ackId: number
  pausesMs: readonly number[]
  ask(): Promise<DestinationAnswer>
  /** Undefined for an answer that is no error. */
  explain(answer: DestinationAnswer): DeliveryOutcome | undefined
}

const longestMs = 15_000

/** Asks until the indexer has acknowledged a batch, for a limited time. */
export async function awaitAck(
  { ackId, pausesMs, ask, explain }: Awaited,
  { now, signal }: Pick<DestinationDeps, 'now' | 'signal'>,
): Promise<DeliveryOutcome> {
  const startMs = now().getTime()
  for (const pauseMs of pausesMs) {
    if (now().getTime() - startMs > longestMs) break
    await sleep(pauseMs, undefined, { signal }).catch(() => {})
    if (signal.aborted)
      return { kind: 'failed', error: 'The wait for an acknowledgement was ended.' }
    const answer = await ask()
    const refusal = explain(answer)
    if (refusal) return refusal
    const said = membersOf(readJsonAnswer(answer.body))
    if (membersOf(said?.['acks'])?.[ackId] === true) return { kind: 'delivered' }
  }
  return { kind: 'failed', error: 'The indexer has not acknowledged the batch in time.' }
}
