import type { AnswerEvent } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import type { OpaqueState } from '#formats/turn.ts'

type Started = Extract<AnswerEvent, { type: 'block_started' }>

/** A block that waits until the open one has ended; its deltas are joined to one text. */
type WaitingBlock = {
  started: Started
  text: string
  opaque: OpaqueState | null
  hasEnded: boolean
}

/** The most characters that may wait in all, so that an answer cannot fill the memory. */
const waitingMaxLength = 8 * 1024 * 1024

/**
 * Reorders the events of an answer so that no two blocks overlap: while one block is open, events of later ones
 * wait. Blocks keep the order in which they started.
 */
export function createBlockQueue() {
  let open: number | null = null
  let waitingLength = 0
  const waiting = new Map<number, WaitingBlock>()

  function reserve(text: string): string {
    waitingLength += text.length
    if (waitingLength <= waitingMaxLength) return text
    throw new BrokenAnswer('Too much of the answer waits for an earlier block to end.')
  }

  function wait(event: Exclude<AnswerEvent, { type: 'started' | 'finished' }>) {
    if (event.type === 'block_started') {
      waiting.set(event.index, { started: event, text: '', opaque: null, hasEnded: false })
      return
    }
    const block = waiting.get(event.index)
    if (!block) return
    if (event.type === 'block_delta') block.text += reserve(event.text)
    else if (event.type === 'block_ended') block.hasEnded = true
    else {
      reserve(event.opaque.data)
      block.opaque = event.opaque
    }
  }

  function releaseNext(released: AnswerEvent[]) {
    for (const [index, block] of waiting) {
      waiting.delete(index)
      waitingLength -= block.text.length + (block.opaque?.data.length ?? 0)
      for (const event of eventsOf(block)) released.push(event)
      if (block.hasEnded) continue
      open = index
      return
    }
  }

  return {
    /** The events that may be written now; `event` may have to wait. */
    push(event: AnswerEvent): AnswerEvent[] {
      if (event.type === 'started' || event.type === 'finished') return [event]
      if (event.type === 'block_started' && open === null) open = event.index
      if (event.index !== open) {
        wait(event)
        return []
      }
      const released: AnswerEvent[] = [event]
      if (event.type !== 'block_ended') return released
      open = null
      releaseNext(released)
      return released
    },
  }
}

function* eventsOf({ started, text, opaque, hasEnded }: WaitingBlock): Iterable<AnswerEvent> {
  const { index } = started
  yield started
  if (text !== '') yield { type: 'block_delta', index, text }
  if (opaque) yield { type: 'block_sealed', index, opaque }
  if (hasEnded) yield { type: 'block_ended', index }
}
