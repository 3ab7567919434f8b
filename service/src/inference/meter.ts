import { type AnswerEvent, noUsage, type Piece, type Usage } from './answer.ts'

type Options = {
  /** The local estimate of what was sent, for when the upstream does not say. */
  inputTokens: number
  countText: (text: string) => Promise<number>
}

export type MeteredUsage = Usage & {
  origin: 'upstream' | 'local-estimate'
  /** What the upstream said and was not believed. */
  rejected?: Usage
}

/** No model writes this much: an upstream that says so is not believed. */
const tokensMax = 100_000_000
/** What is kept of an answer in order to count it, should its upstream not say how long it was. */
const textMaxLength = 4 * 1024 * 1024

/** Watches an answer go by and knows, whenever it ends, how many tokens it has used. */
export function createMeter({ inputTokens, countText }: Options) {
  let known: Usage = noUsage
  let isFinished = false
  let hasBegun = false
  let hasWritten = false
  let rejected: Usage | undefined
  const texts: string[] = []
  let textLength = 0
  let counted: Promise<number> | undefined

  function note(event: AnswerEvent) {
    hasBegun = true
    if (event.type === 'started' || event.type === 'finished') {
      if (isPossible(event.usage)) known = event.usage
      else rejected = event.usage
      isFinished ||= event.type === 'finished'
    } else hasWritten = true
    if (event.type === 'block_delta' && textLength < textMaxLength) {
      texts.push(event.text)
      textLength += event.text.length
    }
  }

  /** What has been written, as well as it can be known: never a reason to fail, whatever is out of order. */
  const countWritten = () =>
    (counted ??= countText(texts.join('')).catch(() => Math.ceil(textLength / 3)))

  return {
    /** Every piece of the answer, as it comes from the upstream. */
    note(piece: Piece) {
      for (const { events } of piece.frames) for (const event of events) note(event)
    },
    /** Has the model said anything? One that only announced an answer and then failed has not. */
    hasWritten: () => hasWritten || isFinished,
    /** As the upstream says, member by member; what it does not say, or says unbelievably, is counted here. */
    async usage(): Promise<MeteredUsage> {
      if (!hasBegun) return { ...noUsage, origin: 'local-estimate' }
      const isOutputKnown = isFinished && (known.outputTokens > 0 || textLength === 0)
      const isInputKnown = known.inputTokens > 0
      return {
        ...known,
        inputTokens: isInputKnown ? known.inputTokens : inputTokens,
        outputTokens: isOutputKnown
          ? known.outputTokens
          : Math.max(known.outputTokens, await countWritten()),
        origin: isInputKnown && isOutputKnown ? 'upstream' : 'local-estimate',
        ...(rejected && { rejected }),
      }
    },
  }
}
export type Meter = ReturnType<typeof createMeter>

/** Cached tokens are part of what was read; whoever says otherwise is not believed at all. */
function isPossible(usage: Usage): boolean {
  const { inputTokens, cachedInputTokens, cacheWriteTokens } = usage
  const areCounts = Object.values(usage).every(
    (count) => Number.isInteger(count) && count >= 0 && count <= tokensMax,
  )
  return areCounts && cachedInputTokens + cacheWriteTokens <= inputTokens
}
