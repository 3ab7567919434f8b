import type { AnswerEvent, Block } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import type { OpaqueState } from '#formats/turn.ts'

// What a verb means in the readers of this format: `start` begins an item or a block, `add` appends a delta,
// `complete` takes the whole text and appends what its deltas left out, `end` closes a block.

/** The state of an answer while its frames are read. */
export type AnswerState = {
  /** The events of the current frame. */
  events: AnswerEvent[]
  hasStarted: boolean
  isFinished: boolean
  /** The items by their `output_index`. */
  items: Map<number, Item>
  blockCount: number
  hasCalled: boolean
  hasRefused: boolean
}

/** A block of the answer. `text` is its text so far, as the upstream wrote it. */
export type OpenBlock = { index: number; text: string; isEnded: boolean }

export type Item = { id: string | undefined } & (
  | { type: 'message'; parts: Map<number, OpenBlock & { type: 'text' | 'refusal' }> }
  | { type: 'function_call' | 'custom_tool_call'; name: string; block: OpenBlock }
  /** Its block starts with its first text or its encrypted content: most reasoning has neither. */
  | { type: 'reasoning'; block: OpenBlock | null; reasoning: ReasoningTexts | null }
  | { type: 'other' }
)

/** The texts of a summary, or of raw reasoning where there is none, by their index. */
export type ReasoningTexts = { from: 'summary' | 'content'; texts: Map<number, string> }

export const createAnswerState = (): AnswerState => ({
  events: [],
  hasStarted: false,
  isFinished: false,
  items: new Map(),
  blockCount: 0,
  hasCalled: false,
  hasRefused: false,
})

export function startBlock(state: AnswerState, block: Block): OpenBlock {
  const index = state.blockCount++
  state.events.push({ type: 'block_started', index, block })
  return { index, text: '', isEnded: false }
}

export function addText(state: AnswerState, block: OpenBlock, text: string) {
  if (block.isEnded) throw new BrokenAnswer('There is more text of a block that has ended.')
  if (text !== '') state.events.push({ type: 'block_delta', index: block.index, text })
}

export function endBlock(state: AnswerState, block: OpenBlock, opaque: OpaqueState | null = null) {
  if (block.isEnded) return
  block.isEnded = true
  if (opaque) state.events.push({ type: 'block_sealed', index: block.index, opaque })
  state.events.push({ type: 'block_ended', index: block.index })
}

/**
 * The end of a whole text that its deltas left out. Servers may trim the whole text or leave it out. They may not
 * change it, nor add to it after its block has ended: the caller would get text that no policy has judged.
 */
export function missingText(whole: string, read: string, block: OpenBlock | null): string {
  if (whole === '' || whole.trim() === read.trim()) {
    return block?.isEnded || !whole.startsWith(read) ? '' : whole.slice(read.length)
  }
  const isMore = whole.startsWith(read) && !block?.isEnded
  if (!isMore) throw new BrokenAnswer('A text differs from the sum of its pieces.')
  return whole.slice(read.length)
}
