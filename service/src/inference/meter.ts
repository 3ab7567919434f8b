import { type AnswerEvent, type Json, noUsage, type Piece, type Usage } from './answer.ts'
import { objectOf } from './untyped.ts'

type Options = {
  /** The local estimate of what was sent, for when the upstream does not say. */
  inputTokens: number
  countText: (text: string) => Promise<number>
}

export type MeteredUsage = Usage & {
  origin: 'upstream' | 'local-estimate'
  /** The upstream's own numbers, where they were not, or not all, believed. */
  said?: Readonly<Record<string, number | string>>
}

/** No model writes this much: an upstream that says so is not believed. */
const tokensMax = 100_000_000
/** What is kept of an answer in order to count it, should its upstream not say how long it was. */
const textMaxLength = 4 * 1024 * 1024

/** Watches an answer go by and knows, whenever it ends, how many tokens it has used. */
export function createMeter({ inputTokens, countText }: Options) {
  let known: Usage = noUsage
  let isOutputSaid = false
  let hasBegun = false
  let hasWritten = false
  let said: Json | undefined
  const texts: string[] = []
  let textLength = 0
  let counted: Promise<number> | undefined

  function note(event: AnswerEvent) {
    hasBegun = true
    if (event.type === 'started' || event.type === 'finished') noteUsage(event)
    else hasWritten = true
    if (event.type === 'block_delta' && textLength < textMaxLength) {
      texts.push(event.text)
      textLength += event.text.length
    }
  }

  /** Input and output are believed each for itself; what was said at the start about the output is no result. */
  function noteUsage({ type, usage }: AnswerEvent & { type: 'started' | 'finished' }) {
    const { outputTokens, reasoningTokens, ...input } = usage
    if (isPossibleInput(input)) known = { ...known, ...input }
    const isPossible = isCount(outputTokens) && isCount(reasoningTokens)
    if (isPossible) known = { ...known, outputTokens, reasoningTokens }
    if (type === 'started') return
    hasWritten = true
    isOutputSaid = isPossible && (outputTokens > 0 || textLength === 0)
  }

  /** What has been written, as well as it can be known: never a reason to fail, whatever is out of order. */
  const countWritten = () =>
    (counted ??= countText(texts.join('')).catch(() => Math.ceil(textLength / 3)))

  return {
    /** Every piece of the answer, as it comes from the upstream. */
    note(piece: Piece) {
      for (const { events, source } of piece.frames) {
        said = usageIn(source.json) ?? said
        for (const event of events) note(event)
      }
    },
    /** Has the upstream begun to answer? From then on it may have worked for us, also without a word. */
    hasBegun: () => hasBegun,
    /** Has the model said anything? One that only announced an answer and then failed has not. */
    hasWritten: () => hasWritten,
    /** As the upstream says, member by member; what it does not say, or says unbelievably, is counted here. */
    async usage(): Promise<MeteredUsage> {
      if (!hasBegun) return { ...noUsage, origin: 'local-estimate' }
      const isInputSaid = known.inputTokens > 0
      const isSaid = isInputSaid && isOutputSaid
      return {
        ...known,
        inputTokens: isInputSaid ? known.inputTokens : inputTokens,
        outputTokens: isOutputSaid
          ? known.outputTokens
          : Math.max(known.outputTokens, await countWritten()),
        origin: isSaid ? 'upstream' : 'local-estimate',
        ...(!isSaid && said && { said: numbersIn(said) }),
      }
    },
  }
}
export type Meter = ReturnType<typeof createMeter>

const isCount = (count: number) => Number.isInteger(count) && count >= 0 && count <= tokensMax

/** Cached tokens are part of what was read; whoever says otherwise is not believed at all. */
function isPossibleInput(input: Omit<Usage, 'outputTokens' | 'reasoningTokens'>): boolean {
  const { inputTokens, cachedInputTokens, cacheWriteTokens } = input
  const areCounts = [inputTokens, cachedInputTokens, cacheWriteTokens].every(isCount)
  return areCounts && cachedInputTokens + cacheWriteTokens <= inputTokens
}

/** Where the three formats put it. */
function usageIn(json: Json): Json | undefined {
  const usage = json['usage'] ?? objectOf(json['message'] ?? json['response'])['usage']
  return typeof usage === 'object' && usage !== null ? objectOf(usage) : undefined
}

/** The numbers of a usage as they were sent, for the record. */
function numbersIn(usage: Json): Record<string, number | string> {
  const numbers = Object.entries(usage).flatMap(([name, value]) => {
    if (typeof value !== 'number' || !/^[\w.-]{1,60}$/.test(name)) return []
    return [[name, Number.isFinite(value) ? value : String(value)] as const]
  })
  return Object.fromEntries(numbers.slice(0, 20))
}
