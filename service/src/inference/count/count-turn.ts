import { hash } from 'node:crypto'

import type { Turn } from '#formats/turn.ts'
import { ApiError } from '#platform/api-error.ts'
import { BoundedMap } from '#platform/bounded-map.ts'
import type { Cancellation } from '#platform/calls/cancellation.ts'
import { noteBegun, timeToBegin, waitForSlice } from '#platform/steps/shared-turns.ts'
import { countTexts, loadCounter } from '#tokens/count.ts'
import type { Encoding } from '#tokens/ranks.ts'

import type { Factors, Script } from './fitted-factor.ts'
import { type Items, itemizeTurn } from './itemize-turn.ts'

/** How the tokens of a model are counted locally. */
export type CountingRule = {
  encoding: Encoding
  /** True if it is the model's own encoding: then the count is exact and the factors are not used. */
  isOwnEncoding: boolean
  factors: Factors
  /** The most tokens of one image. An image of unknown size counts as this many. */
  imageTokensMax: number
}

export type TurnCount = {
  tokens: number
  /** `whole-context`: the input has parts of unknown size, so it may fill the context. */
  origin: 'local-exact' | 'local-estimate' | 'whole-context'
  /** The tokens that are charged if the upstream reports none; `tokens` unless given. */
  billedTokens?: number
  /** The count before any factor, and the kind of text: the factors are fitted to both. */
  localTokens: number
  script: Script
}

/** `short`: the caller can go on with an estimate. `long`: the count is the caller's answer, or is charged. */
export type Patience = 'short' | 'long'

/** The organization for which texts are counted, and how long that may take. */
export type CountAsker = {
  /** Organizations share the threads in turn. */
  owner: string
  cancellation: Cancellation
  patience: Patience
}

/** Counts texts off the event loop. */
export type CountInThread = (
  encoding: Encoding,
  texts: readonly string[],
  asker: CountAsker,
) => Promise<number[]>

const textMaxBytes = 8 * 1024 * 1024
/** More text than this is counted in a worker thread. */
const inlineMaxBytes = 64 * 1024
/** How long a count may occupy the event loop at a time. */
const stepMs = 4

export type TurnCounter = {
  count(turn: Turn, rule: CountingRule, asker: CountAsker): Promise<TurnCount>
  countText(text: string, encoding: Encoding, asker: CountAsker): Promise<number>
  /** Loads encodings. Loading one blocks the event loop for about a tenth of a second. */
  warm(used: Iterable<Encoding>): Promise<void>
}

/**
 * Counts locally the tokens that the model would read of a turn. Every reasoning block of the turn counts, so remove those that
 * the model will not read first (`withoutEarlierReasoning`).
 */
export function createTurnCounter(options: {
  countInThread: CountInThread
  entriesMax?: number
}): TurnCounter {
  const cache = createCountCache({ entriesMax: options.entriesMax ?? 50_000 })

  async function countAll(encoding: Encoding, texts: readonly string[], asker: CountAsker) {
    const { cachedTokens, uncacheable, cacheable } = lookUp(cache, encoding, texts)
    const uncached = [...uncacheable, ...cacheable.values()]
    const counts = await countUncached(encoding, uncached, asker)
    let tokens = cachedTokens
    for (const count of counts) tokens += count
    for (const [index, key] of [...cacheable.keys()].entries()) {
      cache.set(key, counts[uncacheable.length + index] ?? 0)
    }
    return tokens
  }

  async function countUncached(encoding: Encoding, texts: readonly string[], asker: CountAsker) {
    if (byteLengthOf(texts) <= inlineMaxBytes) return countInline(encoding, texts, asker)
    const counts = await options.countInThread(encoding, texts, asker)
    if (counts.length !== texts.length) throw new Error('Not every text was counted.')
    return counts
  }

  return {
    async count(turn, rule, asker) {
      const { texts, otherTokens, isEstimate, bytes } = requireCountable(turn, rule)
      const localTokens = otherTokens + (await countAll(rule.encoding, texts, asker))
      const script = scriptOf(bytes, texts)
      if (rule.isOwnEncoding) {
        const origin = isEstimate ? 'local-estimate' : 'local-exact'
        return { tokens: localTokens, origin, localTokens, script }
      }
      const tokens = Math.ceil(localTokens * rule.factors[script])
      return { tokens, origin: 'local-estimate', localTokens, script }
    },
    async countText(text, encoding, asker) {
      const [tokens = 0] = await countUncached(encoding, [text], asker)
      return tokens
    },
    async warm(used) {
      await Promise.all([...used].map(loadCounter))
    },
  }
}

/** The countable items of a turn; 413 when there is too much text. */
export function requireCountable(
  turn: Turn,
  { imageTokensMax }: Pick<CountingRule, 'imageTokensMax'>,
): Items & { bytes: number } {
  const items = itemizeTurn(turn, imageTokensMax)
  const bytes = byteLengthOf(items.texts)
  if (bytes > textMaxBytes) throw tooLarge()
  return { ...items, bytes }
}

/** Counting a shorter text again is as fast as a lookup: 400 characters take 35 µs to count and 2 µs to look up. */
const charactersMin = 128

/**
 * Caches the token counts of texts, since chats send their history again with every message. It holds hashes and
 * no texts. The least recently used entry is dropped first.
 */
function createCountCache({ entriesMax }: { entriesMax: number }) {
  const counts = new BoundedMap<string, number>(entriesMax)

  return {
    /** Null: too short for the cache. */
    keyOf(encoding: Encoding, text: string): string | null {
      return text.length < charactersMin ? null : encoding + hash('sha256', text, 'base64')
    },
    find(key: string): number | undefined {
      const count = counts.get(key)
      if (count !== undefined) counts.set(key, count) // marks it as the most recently used
      return count
    },
    set: (key: string, count: number) => void counts.set(key, count),
  }
}
type CountCache = ReturnType<typeof createCountCache>

/** Sums the cached counts, and lists the texts that must be counted: `cacheable` ones by their cache key. */
function lookUp(cache: CountCache, encoding: Encoding, texts: readonly string[]) {
  let cachedTokens = 0
  const uncacheable: string[] = []
  const cacheable = new Map<string, string>()
  for (const text of texts) {
    const key = cache.keyOf(encoding, text)
    const count = key === null ? undefined : cache.find(key)
    if (count !== undefined) cachedTokens += count
    else if (key === null || cacheable.has(key)) uncacheable.push(text)
    else cacheable.set(key, text)
  }
  return { cachedTokens, uncacheable, cacheable }
}

/** Counts on the event loop, in the slices that all such work shares. */
async function countInline(
  encoding: Encoding,
  texts: readonly string[],
  { owner, cancellation }: CountAsker,
) {
  let allowedMs = timeToBegin(owner)
  let resumedAt = performance.now()
  const pause = async () => {
    await waitForSlice(owner)
    cancellation.throwIfCancelled()
    allowedMs = stepMs
    resumedAt = performance.now()
  }
  const counts = await countTexts(encoding, texts, () =>
    performance.now() - resumedAt < allowedMs ? undefined : pause(),
  )
  noteBegun(owner, performance.now() - resumedAt)
  return counts
}

const byteLengthOf = (texts: readonly string[]) =>
  texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)

/** `ascii` unless about a tenth of the characters have two bytes or more. */
function scriptOf(bytes: number, texts: readonly string[]): Script {
  const characters = texts.reduce((sum, text) => sum + text.length, 0)
  return bytes <= characters * 1.1 ? 'ascii' : 'other'
}

const tooLarge = () =>
  new ApiError('request_too_large', 'There is more text than can be counted; the limit is 8 MB.')
