import type { Json } from '#formats/answer.ts'
import type { Random } from '#policies/guard/testing/random-case.ts'

import type { Said } from './random-answer.ts'

/** A frame as an upstream sends it, and what it says that no frame before it has said. */
export type WrittenFrame = { bytes: string; says: readonly Said[] }

/** An answer as an upstream of one format sends it: as a stream, and as a plain body. Both say the same. */
export type WrittenAnswer = {
  frames: readonly WrittenFrame[]
  /** What follows a stream that is complete. */
  rest?: string
  body: Json
  bodySays: readonly Said[]
}

export const namedFrame = (type: string, data: Json, says: readonly Said[] = []): WrittenFrame => ({
  bytes: `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`,
  says,
})

export const dataFrame = (data: Json, says: readonly Said[] = []): WrittenFrame => ({
  bytes: `data: ${JSON.stringify(data)}\n\n`,
  says,
})

/** All items of all lists, each list in its order: one list after another, or mixed. */
export function mix<Item>(lists: readonly (readonly Item[])[], random: Random): Item[] {
  if (!random.isOneIn(3)) return lists.flat()
  const rests = lists.map((list) => [...list]).filter(({ length }) => length > 0)
  const mixed: Item[] = []
  while (rests.length > 0) {
    const rest = random.pick(rests)
    mixed.push(...rest.splice(0, 1 + random.below(3)))
    if (rest.length === 0) rests.splice(rests.indexOf(rest), 1)
  }
  return mixed
}
