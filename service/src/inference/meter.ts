import { type AnswerEvent, noUsage, type Usage } from './answer.ts'
import type { Piece } from './upstreams/open-answer.ts'

type Options = {
  /** The local estimate of what was sent, for when the upstream does not say. */
  inputTokens: number
  countText: (text: string) => Promise<number>
}

export type MeteredUsage = Usage & { origin: 'upstream' | 'local-estimate' }

/** No model writes this much: an upstream that says so is not believed. */
const tokensMax = 100_000_000
/** What is kept of an unfinished answer in order to count it. */
const textMaxLength = 4 * 1024 * 1024

/** Watches an answer go by and knows, whenever it ends, how many tokens it has used. */
export function createMeter({ inputTokens, countText }: Options) {
  let known: Usage = noUsage
  let isReported = false
  let hasBegun = false
  let texts: string[] = []
  let textLength = 0
  let counted: Promise<number> | undefined

  function note(event: AnswerEvent) {
    hasBegun = true
    if (event.type === 'started') known = event.usage
    if (event.type === 'finished' && isPossible(event.usage)) {
      known = event.usage
      isReported = event.usage.inputTokens > 0 || event.usage.outputTokens > 0
      texts = []
    }
    if (event.type === 'block_delta' && textLength < textMaxLength) {
      texts.push(event.text)
      textLength += event.text.length
    }
  }

  return {
    /** Every piece of the answer, as it comes from the upstream. */
    note(piece: Piece) {
      for (const { events } of piece.frames) for (const event of events) note(event)
    },
    hasBegun: () => hasBegun,
    /** As the upstream says; else counted here from what was sent and what has come. */
    async usage(): Promise<MeteredUsage> {
      if (isReported) return { ...known, origin: 'upstream' }
      if (!hasBegun) return { ...noUsage, origin: 'local-estimate' }
      counted ??= countText(texts.join(''))
      return {
        ...known,
        inputTokens: known.inputTokens || inputTokens,
        outputTokens: Math.max(known.outputTokens, await counted),
        origin: 'local-estimate',
      }
    },
  }
}
export type Meter = ReturnType<typeof createMeter>

const isPossible = (usage: Usage) =>
  Object.values(usage).every((count) => Number.isInteger(count) && count >= 0 && count <= tokensMax)
