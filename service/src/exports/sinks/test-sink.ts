import { testExport } from '@gatehouse/contract/exports/export-sink'
import type { FastifyInstance } from 'fastify'

import { answerText, readContext, readInput, route, sendAnswer } from '#http/bind.ts'

import type { SinkDeps } from './deps.ts'
import { requireSink } from './find-sink.ts'
import { ConfigUnusable, openSinkConfig } from './open-config.ts'
import type { Sink } from './sink.ts'

/** Not `bind`: while the destination takes its time, the other reads of the organization go on. */
export function serveTestExport(app: FastifyInstance, deps: SinkDeps) {
  const { db, readGate } = deps
  route(app, testExport, async (request, reply) => {
    const { params } = readInput(testExport, request)
    const { principal } = readContext(testExport, request)
    const { organizationId } = principal
    const sink = await readGate(organizationId, () =>
      requireSink(db, organizationId, params.export_id),
    )
    const startedAt = performance.now()
    const result = await sendTo(sink, deps)
    const duration_ms = Math.round(performance.now() - startedAt)
    return sendAnswer(testExport, reply, answerText(testExport, { ...result, duration_ms }))
  })
}

async function sendTo(sink: Sink, { secretBox, sendTest }: SinkDeps) {
  try {
    return await sendTest({ ...sink, config: openSinkConfig(sink, secretBox) })
  } catch (error) {
    if (error instanceof ConfigUnusable) return { delivered: false, error: error.message }
    throw error
  }
}
