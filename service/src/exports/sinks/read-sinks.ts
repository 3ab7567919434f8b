import { listExports, retrieveExport } from '@gatehouse/contract/exports/export-sink'
import { pageOf } from '@gatehouse/contract/list'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import { readPage } from '#http/read-page.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'

import { requireSinkWithDelivery } from './find-sink.ts'
import { presentSink } from './present-sink.ts'
import { findSinkPosition, listSinks } from './sink-store.ts'

type Deps = { db: Db; now: Clock }

export function serveListExports(app: FastifyInstance, { db, now }: Deps) {
  bind(app, listExports, async ({ query }, { principal: { organizationId } }) => {
    const page = await readPage(query, (id) => findSinkPosition(db, organizationId, id))
    const sinks = await listSinks(db, organizationId, page)
    return pageOf(
      sinks.map((sink) => presentSink(sink, now())),
      query.limit,
    )
  })
}

export function serveRetrieveExport(app: FastifyInstance, { db, now }: Deps) {
  bind(app, retrieveExport, async ({ params }, { principal: { organizationId } }) => {
    const sink = await requireSinkWithDelivery(db, organizationId, params.export_id)
    return { export: presentSink(sink, now()) }
  })
}
