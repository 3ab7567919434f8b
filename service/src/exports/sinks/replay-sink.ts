import { replayExport } from '@gatehouse/contract/exports/export-sink'
import type { FastifyInstance } from 'fastify'

import { callerOf } from '#audit/event.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { ApiError } from '#platform/api-error.ts'

import { countReplays, findDelivered, findRange, insertReplays } from './cursor-store.ts'
import type { SinkDeps } from './deps.ts'
import { lockRequiredSink } from './find-sink.ts'
import { asResource } from './present-sink.ts'

/** Open replays of one sink. */
const replaysMax = 5

/** The longest retention of the log, and some days: what is older is not there. */
const oldestMs = 3660 * 24 * 3600 * 1000

/** Events that the live delivery has not passed yet come anyway. */
export function serveReplayExport(app: FastifyInstance, deps: SinkDeps) {
  bindMutation(app, replayExport, deps, {
    async change(tx, { params, body }, context) {
      const { organizationId } = context.principal
      const sink = await lockRequiredSink(tx, deps, context, params.export_id)
      if ((await countReplays(tx, sink.id)) >= replaysMax) throw tooManyReplays()
      const { from, to } = readRange(body, deps.now())
      const upTo = await findDelivered(tx, sink.id)
      const range = await findRange(tx, { organizationId, from, to, upTo })
      if (!range) return { replay: { from_seq: null, to_seq: null, events: 0 } }
      await insertReplays(tx, { sinkId: sink.id, organizationId }, [range])
      const replay = {
        from_seq: range.first,
        to_seq: range.last,
        events: range.last - range.first + 1,
      }
      const resource = asResource(sink)
      await deps.announce(tx, {
        organizationId,
        by: callerOf(context),
        action: 'replayed',
        before: resource,
        after: resource,
        facts: { ...replay, replay_from: from.toISOString(), replay_to: to.toISOString() },
      })
      return { replay }
    },
  })
}

function readRange({ from, to }: { from: string; to?: string | undefined }, now: Date) {
  const nowMs = now.getTime()
  const fromMs = Math.max(Date.parse(from), nowMs - oldestMs)
  const toMs = to === undefined ? nowMs + 1 : Math.min(Date.parse(to), nowMs + 1)
  return { from: new Date(fromMs), to: new Date(Math.max(toMs, 0)) }
}

const tooManyReplays = () =>
  new ApiError(
    'limit_reached',
    `A sink can have at most ${replaysMax} replays at a time; wait until one has ended.`,
  )
