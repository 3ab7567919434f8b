import { within } from '#platform/deadline.ts'
import { createCallPool } from '#platform/lines/call-pool.ts'
import { runInTurns, type Steps } from '#platform/steps/steps.ts'

import type { ScorerCall } from './adapters/adapter.ts'
import { adapters } from './adapters/adapters.ts'
import { joinPieces } from './pieces/join-pieces.ts'
import { groupPieces, splitSegments } from './pieces/split-segments.ts'
import type { PostToModel } from './post-scorer.ts'
import type { ScorerSettings } from './read-moderation.ts'
import { type Scorer, ScorerFailure } from './scorer.ts'

/** How many calls of one request may be open. */
const callsAtOnce = 16
/**
 * A request makes at most this many calls. Texts that need more get no scores, because unseen text must not pass. The scores up
 * to that point are cached, so that the same texts need fewer calls the next time.
 */
const callsMax = 1024
const totalMaxMs = 30_000

/** A configured scorer. It asks its model as often as the texts need, and returns one result per segment. */
export function createScorer(
  { name, adapter: adapterName, place }: ScorerSettings,
  post: PostToModel,
): Scorer {
  const adapter = adapters[adapterName]
  const model = place?.model ?? ''
  const pool = createScorerPool()
  return {
    name,
    covers: adapter.covers,
    readsImages: adapter.readsImages,
    asksOthers: place !== null,
    async score(segments, { signal, organizationId, questions, onScored }) {
      const pieces = splitSegments(segments, adapter.readsImages)
      const joined = joinPieces({ segments, pieces, covers: adapter.covers, onScored })
      /** In steps: a request may have tens of thousands of texts. */
      function* openGroups(): Steps<OpenCall[]> {
        const calls: OpenCall[] = []
        for (const group of groupPieces(pieces, adapter.groupMax)) {
          const parts = group.map(({ segment }) => segment)
          const read = (replies: readonly unknown[]) =>
            joined.add(group, adapter.readReplies(replies, parts))
          calls.push(...openGroup(adapter.toCalls(parts, model), read))
          yield
        }
        return calls
      }
      const calls = await runInTurns(openGroups(), { owner: organizationId, signal })
      if (calls.length > 0) await questions?.begin(Math.min(calls.length, callsMax))
      const send = (either: AbortSignal) =>
        sendAll(calls, ({ path, body }) =>
          pool.run(organizationId, either, () => post(path, body, either)),
        )
      await within(totalMaxMs, () => overloaded(), send, signal)
      return joined.scores
    },
  }
}

/** Limits the calls of this process to one scorer. A request has at most `callsAtOnce` of them in line. */
const createScorerPool = () =>
  createCallPool({
    atOnce: 128,
    waitingMax: 8192,
    waitingOfOneMax: 2048,
    createRefusal: overloaded,
  })

const overloaded = (mayBeByCaller = false) =>
  new ScorerFailure(
    'overloaded',
    'Too many texts wait for the scorer, or they waited for too long.',
    { mayBeByCaller },
  )

const tooLong = () =>
  new ScorerFailure('too_long', 'The texts are too long or too many to be scored.')

/** A caller with very many texts may have kept the scorer busy by itself. */
const byLoad = (error: unknown) =>
  error instanceof ScorerFailure && (error.kind === 'busy' || error.kind === 'timeout')
    ? error.asByCaller()
    : error

type OpenCall = ScorerCall & { onReply(reply: unknown): void }

/** The calls of one group. Its replies are read as soon as all of them have arrived. */
function openGroup(
  calls: readonly ScorerCall[],
  read: (replies: readonly unknown[]) => void,
): OpenCall[] {
  if (calls.length === 0) read([])
  const replies: unknown[] = Array.from({ length: calls.length })
  let waiting = calls.length
  return calls.map((call, place) => ({
    ...call,
    onReply(reply) {
      replies[place] = reply
      waiting--
      if (waiting === 0) read(replies)
    },
  }))
}

/**
 * Sends calls, a few at a time. After a failure no new call is taken, but calls that already wait for their turn are still
 * made.
 */
async function sendAll(
  calls: readonly OpenCall[],
  send: (call: ScorerCall) => Promise<unknown>,
): Promise<void> {
  const waiting = calls.slice(0, callsMax).values()
  let hasFailed = false
  async function work() {
    // All workers take from one iterator, so that each call is sent once.
    for (const call of waiting) {
      if (hasFailed) return
      try {
        call.onReply(await send(call))
      } catch (error) {
        hasFailed = true
        throw calls.length > callsAtOnce ? byLoad(error) : error
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(callsAtOnce, calls.length) }, work))
  if (calls.length > callsMax) throw tooLong()
}
