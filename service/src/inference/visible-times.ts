import type { AnswerEvent } from '#formats/answer.ts'
import type { Clock } from '#platform/clock.ts'

/**
 * When an answer showed something, and when it did not. A model that reasons without showing it is silent before
 * its first visible word, and may be again after any other.
 */
export function createVisibleTimes(now: Clock) {
  const read = () => now().getTime()
  let sentAtMs = read()
  let firstAtMs: number | undefined
  let lastAtMs: number | undefined
  let endedAtMs: number | undefined
  let hasShownReasoning = false
  const reasoningBlocks = new Set<number>()

  return {
    noteSent() {
      sentAtMs = read()
    },
    observe(event: AnswerEvent) {
      if (event.type === 'block_started' && event.block.type === 'reasoning') {
        reasoningBlocks.add(event.index)
      }
      if (event.type !== 'block_delta' || event.text === '') return
      if (reasoningBlocks.has(event.index)) hasShownReasoning = true
      lastAtMs = read()
      firstAtMs ??= lastAtMs
    },
    /** The first call fixes the end. */
    end() {
      endedAtMs ??= read()
    },
    tookMs: () => (endedAtMs ?? read()) - sentAtMs,
    /** The time to the first visible word and since the last. None for an answer that shows its reasoning. */
    hiddenMs(): number {
      if (hasShownReasoning) return 0
      const endMs = endedAtMs ?? read()
      return (firstAtMs ?? endMs) - sentAtMs + (endMs - (lastAtMs ?? endMs))
    },
  }
}
