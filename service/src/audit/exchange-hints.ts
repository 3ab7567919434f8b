import { randomUUID } from 'node:crypto'

import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import type { Redis } from '#platform/redis.ts'

type Options = {
  redis: Redis | undefined
  channel: string
  /** Makes this process poll for changes at once. */
  wake: () => void
  log: Log
  metrics: Pick<Metrics, 'hintsLost'>
}

/** After a change this process polls at once, and asks the others to. Redis may be away; polls cover it. */
export function exchangeHints({ redis, channel, wake, log, metrics }: Options) {
  if (!redis) return { send: wake, subscribe: () => undefined }
  const ourselves = randomUUID()
  const onHint = (sender: string) => {
    if (sender !== ourselves) wake()
  }
  return {
    send() {
      wake()
      redis.publish(channel, ourselves).catch(() => metrics.hintsLost.inc())
    },
    subscribe() {
      redis
        .subscribe(channel, onHint)
        .catch((error: unknown) => log.problem('hints_not_subscribed', error))
    },
  }
}
