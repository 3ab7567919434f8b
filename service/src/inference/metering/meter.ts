import { type AnswerEvent, type Json, noUsage, type Piece, type Usage } from '#formats/answer.ts'
import { isTokenCount } from '#formats/json-values.ts'
import type { Clock } from '#platform/clock.ts'

import { createDelivery } from './delivery.ts'
import { createVisibleTimes } from './visible-times.ts'

type Options = {
  /** The local estimate of the input, used if the upstream reports none. */
  inputTokens: number
  maxOutputTokens: number
  countText: (text: string) => Promise<number>
  /** How many tokens per second the model writes while it shows nothing; 0 for a model that does not reason. */
  hiddenTokensPerSecond: () => number
  /** Whether the caller has hung up. Only then does it pay for output that it did not wait for. */
  isHungUp: () => boolean
  now: Clock
}

export type MeteredUsage = Usage & {
  /** `time-estimate`: counted here, with output that was never seen. */
  origin: 'upstream' | 'local-estimate' | 'time-estimate'
  /** The upstream's own report, if we believed it only in part or not at all. */
  said?: Readonly<Record<string, number | string>>
}

/** How much of an answer is kept so that it can be counted if the upstream reports no usage. */
const textMaxLength = 4 * 1024 * 1024

/** Observes an answer and can tell at any time how many tokens it has used. */
export function createMeter({ inputTokens: estimated, countText, now, ...hiding }: Options) {
  let inputTokens = estimated
  const times = createVisibleTimes(now)
  const shown = createShownTexts(countText, times.noteText)
  const reported = createReportedUsage()
  let hasBegun = false
  let hasWritten = false
  let hasMedia = false

  function observe(event: AnswerEvent) {
    hasBegun = true
    shown.observe(event)
    if (event.type === 'started' || event.type === 'finished') reported.observe(event)
    if (event.type !== 'started') hasWritten = true
  }

  /** Counts an answer whose upstream reported no believable output. */
  async function estimateOutput(reportedTokens: number) {
    const { answered, reasoned } = await shown.count()
    const visible = Math.max(reportedTokens, answered + reasoned)
    const isCut = hiding.isHungUp() && !reported.hasFinished()
    // The visible reasoning may be a summary of what the model wrote.
    const hidden = isCut ? hiddenTokens(times.hiddenMs(), hasMedia, hiding) : 0
    const all = Math.min(answered + hidden, Math.max(visible, hiding.maxOutputTokens))
    return all > visible
      ? { outputTokens: all, origin: 'time-estimate' as const }
      : { outputTokens: visible, origin: 'local-estimate' as const }
  }

  return {
    /** Called when the request that is sent was counted anew. */
    noteInput: (tokens: number) => void (inputTokens = tokens),
    /** Called when the request is sent to an upstream; the last attempt counts. */
    noteSent: times.noteSent,
    /** Called with every piece of the answer, as it comes from the upstream. */
    observe(piece: Piece) {
      times.startPiece()
      for (const { events, reportedUsage, hasMedia: isMedia = false } of piece.frames) {
        reported.noteRaw(reportedUsage)
        hasMedia ||= isMedia
        for (const event of events) observe(event)
      }
    },
    ...createDelivery(),
    /** Called when a plain answer is given up after its caller has hung up. Then only the elapsed time tells what it has cost. */
    noteUnseen: () => void (hasBegun = true),
    /** True once the upstream has started to answer, because from then on the call may have cost something. */
    hasBegun: () => hasBegun,
    /** True once the model has written something; the start of an answer alone does not count. */
    hasWritten: () => hasWritten,
    /** From the request to the end of the answer. */
    tookMs: times.tookMs,
    /** The usage as the upstream reports it, member by member. Members that are missing or impossible are counted here. */
    async usage(): Promise<MeteredUsage> {
      times.end()
      if (!hasBegun) return { ...noUsage, origin: 'local-estimate' }
      const { usage, isOutputReported } = reported.read(shown.isEmpty())
      const isInputReported = usage.inputTokens > 0
      const isReported = isInputReported && isOutputReported
      if (isReported) return { ...usage, origin: 'upstream' }
      const said = reported.said()
      return {
        ...usage,
        inputTokens: isInputReported ? usage.inputTokens : inputTokens,
        ...(isOutputReported
          ? { origin: 'local-estimate' }
          : await estimateOutput(usage.outputTokens)),
        ...(said && { said }),
      }
    },
  }
}
export type Meter = ReturnType<typeof createMeter>

/** The tokens of a cut answer beyond its visible text. They are estimated from the time, because nothing else is known. */
function hiddenTokens(
  hiddenMs: number,
  hasMedia: boolean,
  {
    maxOutputTokens,
    hiddenTokensPerSecond,
  }: Pick<Options, 'maxOutputTokens' | 'hiddenTokensPerSecond'>,
): number {
  if (hasMedia) return maxOutputTokens
  return Math.ceil((hiddenMs / 1000) * hiddenTokensPerSecond())
}

/** The visible texts of an answer: the reasoning that was shown, and everything else. */
function createShownTexts(countText: Options['countText'], onText: (isReasoning: boolean) => void) {
  const prose = createWrittenText(countText)
  const reasoning = createWrittenText(countText)
  const reasoningBlocks = new Set<number>()
  return {
    observe(event: AnswerEvent) {
      if (event.type === 'block_started' && event.block.type === 'reasoning') {
        reasoningBlocks.add(event.index)
      }
      if (event.type !== 'block_delta' || event.text === '') return
      const isReasoning = reasoningBlocks.has(event.index)
      onText(isReasoning)
      if (isReasoning) reasoning.add(event.text)
      else prose.add(event.text)
    },
    isEmpty: () => prose.isEmpty() && reasoning.isEmpty(),
    count: async () => ({ answered: await prose.count(), reasoned: await reasoning.count() }),
  }
}

/** A text that is kept so that it can be counted. */
function createWrittenText(countText: Options['countText']) {
  const texts: string[] = []
  let length = 0
  let counted: Promise<number> | undefined
  return {
    add(text: string) {
      if (length >= textMaxLength) return
      texts.push(text)
      length += text.length
    },
    isEmpty: () => length === 0,
    /** If counting fails, the tokens are estimated: counting must never make the call fail. */
    count: () =>
      (counted ??=
        length === 0
          ? Promise.resolve(0)
          : countText(texts.join('')).catch(() => Math.ceil(length / 3))),
  }
}

/** The parts of the reported usage that are possible. Input and output are judged separately. */
function createReportedUsage() {
  let usage: Usage = noUsage
  let isLastPossible = false
  let hasFinished = false
  /** The last usage of the upstream, as it wrote it. */
  let raw: Json | undefined
  return {
    observe({ type, usage: sent }: AnswerEvent & { type: 'started' | 'finished' }) {
      const { outputTokens, reasoningTokens, ...input } = sent
      if (isPossibleInput(input)) usage = { ...usage, ...input }
      const isPossible = isTokenCount(outputTokens) && isTokenCount(reasoningTokens)
      if (isPossible) usage = { ...usage, outputTokens, reasoningTokens }
      // Output that is reported at the start of an answer is not a result.
      if (type === 'started') return
      hasFinished = true
      isLastPossible = isPossible
    },
    noteRaw(sent: Json | undefined) {
      raw = sent ?? raw
    },
    hasFinished: () => hasFinished,
    read: (isNothingWritten: boolean) => ({
      usage,
      isOutputReported: isLastPossible && (usage.outputTokens > 0 || isNothingWritten),
    }),
    /** The upstream's last report, for a ledger entry that does not follow it. */
    said: () => raw && numbersIn(raw),
  }
}

/** Cached tokens are part of the input, so a report with more of them than input is not believed at all. */
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
