import { createExport } from '@gatehouse/contract/exports/export-sink'
import type { FastifyInstance } from 'fastify'

import { lockOrganization } from '#access/organizations/organization-store.ts'
import { callerOf } from '#audit/event.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { limitReached } from '#platform/api-error.ts'
import { createId } from '#platform/id.ts'

import { requirePublicAddress } from './check-addresses.ts'
import type { SinkDeps } from './deps.ts'
import { requireSinkWithDelivery } from './find-sink.ts'
import { asResource, presentSink } from './present-sink.ts'
import { mergeConfig, readConfig } from './read-config.ts'
import { countSinks, insertSink } from './sink-store.ts'
import { sealConfig, type Sink } from './sink.ts'

/** Sinks of an organization. */
const sinksMax = 20

export function serveCreateExport(app: FastifyInstance, deps: SinkDeps) {
  bindMutation(app, createExport, deps, {
    prepare: async ({ body }) => {
      const config = readConfig(body.type, mergeConfig(body.type, {}, body.config), deps)
      await requirePublicAddress(body.type, config, deps)
    },
    async change(tx, { body }, context) {
      const { organizationId } = context.principal
      const { type, label = type, enabled } = body
      const now = deps.now()
      const identity = { id: createId('exp', now), organizationId, type }
      const config = readConfig(type, mergeConfig(type, {}, body.config), deps)
      const sealed = sealConfig(identity, config, deps.secretBox)
      const times = { createdAt: now, updatedAt: now }
      const managedBy = context.writer.set
      const sink: Sink = { ...identity, ...sealed, label, enabled, managedBy, ...times }
      await lockOrganization(tx, organizationId)
      if ((await countSinks(tx, organizationId)) >= sinksMax) {
        throw limitReached('export sinks', sinksMax)
      }
      await insertSink(tx, sink)
      await deps.announce(tx, {
        organizationId,
        by: callerOf(context),
        action: 'created',
        before: null,
        after: asResource(sink),
      })
      const made = await requireSinkWithDelivery(tx, organizationId, sink.id)
      return { export: presentSink(made, now) }
    },
  })
}
