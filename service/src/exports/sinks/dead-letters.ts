import {
  listExportDeadLetters,
  requeueExportDeadLetters,
} from '@gatehouse/contract/exports/export-sink'
import { pageOf } from '@gatehouse/contract/list'
import type { FastifyInstance } from 'fastify'

import { callerOf } from '#audit/event.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { bind } from '#http/bind.ts'
import { invalidCursor } from '#http/read-page.ts'
import type { Db } from '#platform/database.ts'

import { insertReplays, type SequenceRange } from './cursor-store.ts'
import { findSequence, listDeadLetters, takeDeadLetters } from './dead-letter-store.ts'
import type { SinkDeps } from './deps.ts'
import { lockRequiredSink, requireSink } from './find-sink.ts'
import { asResource, presentDeadLetter } from './present-sink.ts'

const requeuedMax = 100
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

export function serveListExportDeadLetters(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, listExportDeadLetters, async ({ params, query }, { principal }) => {
    const { organizationId } = principal
    const { id: sinkId } = await requireSink(db, organizationId, params.export_id)
    const { after: afterId, limit, order } = query
    const after = afterId && (await requireSequence(db, { sinkId, organizationId }, afterId))
    const page = { after: after || undefined, limit, order }
    const rows = await listDeadLetters(db, sinkId, page)
    return pageOf(rows.map(presentDeadLetter), limit)
  })
}

async function requireSequence(
  db: Db,
  target: { sinkId: string; organizationId: string },
  eventId: string,
): Promise<number> {
  const sequence = uuid.test(eventId) ? await findSequence(db, target, eventId) : undefined
  if (sequence === undefined) throw invalidCursor()
  return sequence
}

/** Removing the dead letters and delivering their events again commit together, so that none is lost. */
export function serveRequeueExportDeadLetters(app: FastifyInstance, deps: SinkDeps) {
  bindMutation(app, requeueExportDeadLetters, deps, {
    async change(tx, { params, body }, context) {
      const { organizationId } = context.principal
      const sink = await lockRequiredSink(tx, deps, context, params.export_id)
      const wanted = { eventIds: body.event_ids, limit: requeuedMax }
      const taken = await takeDeadLetters(tx, { sinkId: sink.id, organizationId }, wanted)
      if (taken.length === 0) return { requeued: 0 }
      await insertReplays(tx, { sinkId: sink.id, organizationId }, joinNeighbours(taken))
      const resource = asResource(sink)
      await deps.announce(tx, {
        organizationId,
        by: callerOf(context),
        action: 'requeued',
        before: resource,
        after: resource,
        facts: { requeued: taken.length },
      })
      return { requeued: taken.length }
    },
  })
}

/** Numbers that follow one another share a range, which begins on the earliest of their days. */
function joinNeighbours(numbers: readonly { orgSeq: number; day: string }[]): SequenceRange[] {
  const ranges: SequenceRange[] = []
  for (const { orgSeq, day } of numbers) {
    const range = ranges.at(-1)
    if (range?.last === orgSeq - 1) {
      range.last = orgSeq
      if (day < range.day) range.day = day
    } else {
      ranges.push({ first: orgSeq, last: orgSeq, day })
    }
  }
  return ranges
}
