import { createHash } from 'node:crypto'

import type { Frame } from '#formats/answer.ts'
import type { Turn } from '#formats/turn.ts'
import { BoundedMap } from '#platform/bounded-map.ts'
import type { Redis } from '#platform/redis.ts'

type Options = { redis: Redis | undefined; namespace: string }

const entriesMax = 10_000
const keptSeconds = 24 * 60 * 60

/**
 * Remembers which upstream made a piece of opaque state, because only that one can read it. Entries exist only
 * for upstreams that are not the first of their model, in memory and, for other processes, in Redis. Without an
 * entry the call goes to the first upstream.
 */
export function createSticky({ redis, namespace }: Options) {
  const upstreams = new BoundedMap<string, string>(entriesMax)
  const keyOf = (digest: string) => `${namespace}:home:${digest}`

  return {
    /** Called with the frames of an answer whose upstream is not the first one of the model. */
    remember(frames: readonly Frame[], upstream: string) {
      for (const event of frames.flatMap((frame) => frame.events)) {
        if (event.type !== 'block_sealed') continue
        const digest = digestOf(event.opaque.data)
        upstreams.set(digest, upstream)
        redis
          ?.send(keyOf(digest), ['SET', keyOf(digest), upstream, 'EX', String(keptSeconds)])
          .catch(() => undefined)
      }
    },
    /** The name of the upstream that made the opaque state of the turn, if it is known not to be the first. */
    async findUpstream(turn: Turn): Promise<string | undefined> {
      const data = lastOpaqueOf(turn)
      if (data === undefined) return undefined
      const digest = digestOf(data)
      const known = upstreams.get(digest)
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
