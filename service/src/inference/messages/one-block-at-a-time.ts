import type { AnswerEvent } from '#inference/answer.ts'

/**
 * Puts the events of an answer into an order in which no two blocks overlap: while one is open, what
 * belongs to later ones waits. Blocks keep the order in which they started.
 */
export function createBlockQueue() {
  let open: number | null = null
  const waiting = new Map<number, AnswerEvent[]>()

  function releaseNext(): AnswerEvent[] {
    const released: AnswerEvent[] = []
    for (const [index, events] of waiting) {
      waiting.delete(index)
      released.push(...events)
      if (events.at(-1)?.type === 'block_ended') continue
      open = index
      break
    }
    return released
  }

  return {
    /** What may be written now, `event` or others. */
    push(event: AnswerEvent): AnswerEvent[] {
      if (event.type === 'started' || event.type === 'finished') return [event]
      if (event.type === 'block_started') {
        if (open !== null) {
          waiting.set(event.index, [event])
          return []
        }
        open = event.index
        return [event]
      }
      if (event.index !== open) {
        waiting.get(event.index)?.push(event)
        return []
      }
      if (event.type !== 'block_ended') return [event]
      open = null
      return [event, ...releaseNext()]
    },
  }
}
