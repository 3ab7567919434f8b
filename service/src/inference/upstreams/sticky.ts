import { createHash } from 'node:crypto'

import type { Frame } from '#inference/answer.ts'
import type { Turn } from '#inference/turn.ts'
import type { Redis } from '#platform/redis.ts'

type Options = { redis: Redis | undefined; namespace: string }

const rememberedMax = 10_000
const keptSeconds = 24 * 60 * 60

/**
 * Remembers which upstream made a piece of opaque state, where it was not the model's first one: nobody else
 * can read it. Kept in memory and, for the other processes, in Redis; whatever is lost is asked of the first.
 */
export function createSticky({ redis, namespace }: Options) {
  const homes = new Map<string, string>()
  const keyOf = (digest: string) => `${namespace}:home:${digest}`

  function keep(digest: string, upstream: string) {
    homes.delete(digest)
    homes.set(digest, upstream)
    const [oldest] = homes.keys()
    if (homes.size > rememberedMax && oldest !== undefined) homes.delete(oldest)
  }

  return {
    /** Watches an answer of an upstream that is not the model's first. */
    remember(frames: readonly Frame[], upstream: string) {
      for (const event of frames.flatMap((frame) => frame.events)) {
        if (event.type !== 'block_sealed') continue
        const digest = digestOf(event.opaque.data)
        keep(digest, upstream)
        redis
          ?.send(keyOf(digest), ['SET', keyOf(digest), upstream, 'EX', String(keptSeconds)])
          .catch(() => undefined)
      }
    },
    /** The upstream that can read what the turn carries, if it is known not to be the first. */
    async homeOf(turn: Turn): Promise<string | undefined> {
      const data = lastOpaqueOf(turn)
      if (data === undefined) return undefined
      const digest = digestOf(data)
      const known = homes.get(digest)
      if (known !== undefined || !redis) return known
      const found = await redis.send(keyOf(digest), ['GET', keyOf(digest)]).catch(() => null)
      return Buffer.isBuffer(found) ? found.toString() : undefined
    },
  }
}
export type Sticky = ReturnType<typeof createSticky>

const digestOf = (data: string) => createHash('sha256').update(data).digest('base64url')

/** The newest piece of opaque state; undefined when the turn carries none. */
export function lastOpaqueOf({ messages }: Turn): string | undefined {
  for (const { parts } of messages.toReversed()) {
    for (const part of parts.toReversed()) {
      if (part.type === 'reasoning' && part.opaque) return part.opaque.data
    }
  }
  return undefined
}
