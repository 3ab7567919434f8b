import { deleteExport } from '@gatehouse/contract/exports/export-sink'
import type { FastifyInstance } from 'fastify'

import { callerOf } from '#audit/event.ts'
import { bindMutation } from '#http/bind-mutation.ts'

import type { SinkDeps } from './deps.ts'
import { lockRequiredSink } from './find-sink.ts'
import { asResource } from './present-sink.ts'
import { deleteSink } from './sink-store.ts'

export function serveDeleteExport(app: FastifyInstance, deps: SinkDeps) {
  bindMutation(app, deleteExport, deps, {
    async change(tx, { params }, context) {
      const { organizationId } = context.principal
      const sink = await lockRequiredSink(tx, deps, context, params.export_id)
      await deleteSink(tx, sink)
      await deps.announce(tx, {
        organizationId,
        by: callerOf(context),
        action: 'deleted',
        before: asResource(sink),
        after: null,
      })
      return {
        id: sink.id,
        object: 'policy_gateway.export.deleted' as const,
        deleted: true as const,
      }
    },
  })
}
