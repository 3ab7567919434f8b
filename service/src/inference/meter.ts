import { type AnswerEvent, type Json, noUsage, type Piece, type Usage } from '#formats/answer.ts'
import { isTokenCount } from '#formats/json-values.ts'

type Options = {
  /** The local estimate of the input, used where the upstream reports none. */
  inputTokens: number
  countText: (text: string) => Promise<number>
}

export type MeteredUsage = Usage & {
  origin: 'upstream' | 'local-estimate'
  /** The upstream's own numbers, where they were not, or not all, believed. */
  said?: Readonly<Record<string, number | string>>
}

/** The most of an answer that is kept in order to count it, in case its upstream reports no usage. */
const textMaxLength = 4 * 1024 * 1024

/** Observes an answer and knows, whenever it ends, how many tokens it has used. */
export function createMeter({ inputTokens, countText }: Options) {
  let reported: Usage = noUsage
  let isOutputReported = false
  let hasBegun = false
  let hasWritten = false
  /** The last usage of the upstream, as it wrote it. */
  let rawUsage: Json | undefined
  const texts: string[] = []
  let textLength = 0
  let counted: Promise<number> | undefined

  function observe(event: AnswerEvent) {
    hasBegun = true
    if (event.type === 'started' || event.type === 'finished') observeUsage(event)
    else hasWritten = true
    if (event.type === 'block_delta' && textLength < textMaxLength) {
      texts.push(event.text)
      textLength += event.text.length
    }
  }

  /** Input and output are judged separately. The output that is reported at the start is not a result. */
  function observeUsage({ type, usage }: AnswerEvent & { type: 'started' | 'finished' }) {
    const { outputTokens, reasoningTokens, ...input } = usage
    if (isPossibleInput(input)) reported = { ...reported, ...input }
    const isPossible = isTokenCount(outputTokens) && isTokenCount(reasoningTokens)
    if (isPossible) reported = { ...reported, outputTokens, reasoningTokens }
    if (type === 'started') return
    hasWritten = true
    isOutputReported = isPossible && (outputTokens > 0 || textLength === 0)
  }

  /** The tokens written so far. A count that fails is estimated, because it must not make the call fail. */
  const countWritten = () =>
    (counted ??= countText(texts.join('')).catch(() => Math.ceil(textLength / 3)))

  return {
    /** Called with every piece of the answer, as it comes from the upstream. */
    observe(piece: Piece) {
      for (const { events, reportedUsage } of piece.frames) {
        rawUsage = reportedUsage ?? rawUsage
        for (const event of events) observe(event)
      }
    },
    /** True once the upstream has started to answer: from then on it may have cost something. */
    hasBegun: () => hasBegun,
    /** True once the model has written something: a bare start does not count. */
    hasWritten: () => hasWritten,
    /** As the upstream reports it, member by member; missing or impossible members are counted here. */
    async usage(): Promise<MeteredUsage> {
      if (!hasBegun) return { ...noUsage, origin: 'local-estimate' }
      const isInputReported = reported.inputTokens > 0
      const isReported = isInputReported && isOutputReported
      return {
        ...reported,
        inputTokens: isInputReported ? reported.inputTokens : inputTokens,
        outputTokens: isOutputReported
          ? reported.outputTokens
          : Math.max(reported.outputTokens, await countWritten()),
        origin: isReported ? 'upstream' : 'local-estimate',
        ...(!isReported && rawUsage && { said: numbersIn(rawUsage) }),
      }
    },
  }
}
export type Meter = ReturnType<typeof createMeter>

/** Cached tokens are part of the input: a report with more of them is not believed at all. */
function isPossibleInput(input: Omit<Usage, 'outputTokens' | 'reasoningTokens'>): boolean {
  const { inputTokens, cachedInputTokens, cacheWriteTokens } = input
  const { cacheWriteHourTokens = 0, webSearches = 0 } = input
  const counts = [
    inputTokens,
    cachedInputTokens,
    cacheWriteTokens,
    cacheWriteHourTokens,
    webSearches,
  ]
  return (
    counts.every(isTokenCount) &&
    cachedInputTokens + cacheWriteTokens <= inputTokens &&
    cacheWriteHourTokens <= cacheWriteTokens
  )
}

/** The numbers of a usage as they were sent, for the ledger. */
function numbersIn(usage: Json): Record<string, number | string> {
  const numbers = Object.entries(usage).flatMap(([name, value]) => {
    if (typeof value !== 'number' || !/^[\w.-]{1,60}$/.test(name)) return []
    return [[name, Number.isFinite(value) ? value : String(value)] as const]
  })
  return Object.fromEntries(numbers.slice(0, 20))
}
