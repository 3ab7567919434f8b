import { setImmediate } from 'node:timers/promises'

import type { Turn } from '#inference/turn.ts'
import { ApiError } from '#platform/api-error.ts'
import { countTexts, loadCounter } from '#tokens/count.ts'
import type { Encoding } from '#tokens/ranks.ts'

import type { Factors, Script } from './fitted-factor.ts'
import { type Items, itemizeTurn } from './itemize-turn.ts'
import { createKnownCounts, type KnownCounts } from './known-counts.ts'

/** How a model's tokens are counted here. */
export type CountingRule = {
  encoding: Encoding
  /** Is that the model's own encoding? Then nothing is estimated and the factors are not used. */
  isOwnEncoding: boolean
  factors: Factors
}

export type TurnCount = {
  tokens: number
  origin: 'local-exact' | 'local-estimate'
  /** What the factors are fitted to: the count before any factor, and the kind of text. */
  localTokens: number
  script: Script
}

/** Counts texts beside the event loop. */
export type CountElsewhere = (
  encoding: Encoding,
  texts: readonly string[],
  signal: AbortSignal,
) => Promise<number[]>

const textMaxBytes = 8 * 1024 * 1024
const textHereMaxBytes = 64 * 1024
const stepMs = 5
const neverAborted = new AbortController().signal

export type TurnCounter = {
  count(turn: Turn, rule: CountingRule, signal: AbortSignal): Promise<TurnCount>
  countText(text: string, encoding: Encoding): Promise<number>
  /** Loads encodings: the better part of a second for each, in which nothing else happens here. */
  warm(used: Iterable<Encoding>): Promise<void>
}

/**
 * Counts what the model would read of a turn, without asking anybody. Every reasoning block that is there
 * counts: take out those that the model will not read (`withoutEarlierReasoning`).
 */
export function createTurnCounter(options: {
  countElsewhere: CountElsewhere
  entriesMax?: number
}): TurnCounter {
  const known = createKnownCounts({ entriesMax: options.entriesMax ?? 50_000 })

  async function countAll(encoding: Encoding, texts: readonly string[], signal: AbortSignal) {
    const { knownTokens, short, long } = sortOut(known, encoding, texts)
    const counts = await countFresh(encoding, [...short, ...long.values()], signal)
    let tokens = knownTokens
    for (const count of counts) tokens += count
    for (const [index, key] of [...long.keys()].entries()) {
      known.remember(key, counts[short.length + index] ?? 0)
    }
    return tokens
  }

  async function countFresh(encoding: Encoding, texts: readonly string[], signal: AbortSignal) {
    if (byteLengthOf(texts) <= textHereMaxBytes) return countHere(encoding, texts, signal)
    const counts = await options.countElsewhere(encoding, texts, signal)
    if (counts.length !== texts.length) throw new Error('Not every text was counted.')
    return counts
  }

  return {
    async count(turn, rule, signal) {
      const { texts, otherTokens, isGuess, bytes } = requireCountable(turn)
      const localTokens = otherTokens + (await countAll(rule.encoding, texts, signal))
      const script = scriptOf(bytes, texts)
      if (rule.isOwnEncoding) {
        const origin = isGuess ? 'local-estimate' : 'local-exact'
        return { tokens: localTokens, origin, localTokens, script }
      }
      const tokens = Math.ceil(localTokens * rule.factors[script])
      return { tokens, origin: 'local-estimate', localTokens, script }
    },
    async countText(text, encoding) {
      const [tokens = 0] = await countFresh(encoding, [text], neverAborted)
      return tokens
    },
    async warm(used) {
      await Promise.all([...used].map(loadCounter))
    },
  }
}

/** What there is to count; 413 when that is more than we count. */
export function requireCountable(turn: Turn): Items & { bytes: number } {
  const items = itemizeTurn(turn)
  const bytes = byteLengthOf(items.texts)
  if (bytes > textMaxBytes) throw tooLarge()
  return { ...items, bytes }
}

/** What is known already, and what is to be counted: short texts, and long ones by the key to keep them. */
function sortOut(known: KnownCounts, encoding: Encoding, texts: readonly string[]) {
  let knownTokens = 0
  const short: string[] = []
  const long = new Map<string, string>()
  for (const text of texts) {
    const key = known.keyOf(encoding, text)
    const count = key === null ? undefined : known.find(key)
    if (count !== undefined) knownTokens += count
    else if (key === null || long.has(key)) short.push(text)
    else long.set(key, text)
  }
  return { knownTokens, short, long }
}

/** Every few milliseconds others have their turn. */
function countHere(encoding: Encoding, texts: readonly string[], signal: AbortSignal) {
  let resumedAt = performance.now()
  const pause = async () => {
    await setImmediate()
    signal.throwIfAborted()
    resumedAt = performance.now()
  }
  return countTexts(encoding, texts, () =>
    performance.now() - resumedAt < stepMs ? undefined : pause(),
  )
}

const byteLengthOf = (texts: readonly string[]) =>
  texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)

/** Characters beyond ASCII have two bytes or more: one in ten makes the difference. */
function scriptOf(bytes: number, texts: readonly string[]): Script {
  const characters = texts.reduce((sum, text) => sum + text.length, 0)
  return bytes <= characters * 1.1 ? 'ascii' : 'other'
}

const tooLarge = () =>
  new ApiError('request_too_large', 'There is more text than can be counted; the limit is 8 MB.')
