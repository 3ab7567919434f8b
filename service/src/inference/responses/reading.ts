import type { AnswerEvent, Block } from '#inference/answer.ts'
import { BrokenAnswer } from '#inference/broken-answer.ts'
import type { Opaque } from '#inference/turn.ts'

/** What is known of an answer while it is read. */
export type Reading = {
  /** What the frame at hand means; taken away after each. */
  events: AnswerEvent[]
  hasStarted: boolean
  isFinished: boolean
  /** The items by their `output_index`. */
  items: Map<number, Item>
  blockCount: number
  hasCalled: boolean
  hasRefused: boolean
}

/** A block of the answer. `text` is what was read of it, as the upstream wrote it. */
export type OpenBlock = { index: number; text: string; isEnded: boolean }

export type Item = { id: string | undefined } & (
  | { type: 'message'; parts: Map<number, OpenBlock & { type: 'text' | 'refusal' }> }
  | { type: 'function_call' | 'custom_tool_call'; name: string; block: OpenBlock }
  /** Starts its block with its first text, or its seal: most reasoning is never shown. */
  | { type: 'reasoning'; block: OpenBlock | null; shown: ShownReasoning | null }
  | { type: 'other' }
)

/** A summary, or raw reasoning where there is none; its texts by their index. */
export type ShownReasoning = { from: 'summary' | 'content'; texts: Map<number, string> }

export const newReading = (): Reading => ({
  events: [],
  hasStarted: false,
  isFinished: false,
  items: new Map(),
  blockCount: 0,
  hasCalled: false,
  hasRefused: false,
})

export function startBlock(reading: Reading, block: Block): OpenBlock {
  const index = reading.blockCount++
  reading.events.push({ type: 'block_started', index, block })
  return { index, text: '', isEnded: false }
}

export function addText(reading: Reading, block: OpenBlock, text: string) {
  if (block.isEnded) throw new BrokenAnswer('There is more text of a block that has ended.')
  if (text !== '') reading.events.push({ type: 'block_delta', index: block.index, text })
}

export function endBlock(reading: Reading, block: OpenBlock, opaque: Opaque | null = null) {
  if (block.isEnded) return
  block.isEnded = true
  if (opaque) reading.events.push({ type: 'block_sealed', index: block.index, opaque })
  reading.events.push({ type: 'block_ended', index: block.index })
}

/**
 * What a whole text has beyond what was read of it already. Servers may trim it or leave it out; they may not
 * change it, nor add to it when its block has ended: a caller would get what nobody has judged.
 */
export function restOf(whole: string, read: string, block: OpenBlock | null): string {
  if (whole === '' || whole.trim() === read.trim()) {
    return block?.isEnded || !whole.startsWith(read) ? '' : whole.slice(read.length)
  }
  const isMore = whole.startsWith(read) && !block?.isEnded
  if (!isMore) throw new BrokenAnswer('A text differs from the sum of its pieces.')
  return whole.slice(read.length)
}
