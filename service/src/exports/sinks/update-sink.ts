import { isDeepStrictEqual } from 'node:util'

import { updateExport } from '@gatehouse/contract/exports/export-sink'
import { secretMembers, type SinkType } from '@gatehouse/contract/exports/sink-config'
import type { FastifyInstance } from 'fastify'

import { callerOf } from '#audit/event.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Tx } from '#platform/database.ts'

import { requireAllowedAddress, requirePublicAddress } from './check-addresses.ts'
import { endLeases, forgetObjects, retryNow } from './cursor-store.ts'
import type { SinkDeps } from './deps.ts'
import { lockRequiredSink, requireSinkWithDelivery } from './find-sink.ts'
import { asResource, presentSink } from './present-sink.ts'
import { mergeConfig, readConfig } from './read-config.ts'
import { findSink, updateSink } from './sink-store.ts'
import { type Members, openKnownMembers, sealConfig, type Sink } from './sink.ts'

type Edit = {
  type?: SinkType | undefined
  label?: string | undefined
  enabled?: boolean | undefined
  config?: Members | undefined
}

export function serveUpdateExport(app: FastifyInstance, deps: SinkDeps) {
  bindMutation(app, updateExport, deps, {
    async prepare({ params, body }, { principal: { organizationId } }) {
      const sink = body.config && (await findSink(deps.db, organizationId, params.export_id))
      if (!sink) return // `change` says so
      requireSameType(sink, body)
      const config = tryReading(() => readEdited(sink, body, deps))
      if (config) await requirePublicAddress(sink.type, config, deps)
    },
    async change(tx, { params, body }, context) {
      const { organizationId } = context.principal
      const before = await lockRequiredSink(tx, deps, context, params.export_id)
      requireSameType(before, body)
      const { after, changedSecrets } = editSink(before, body, deps)
      if (after !== before) {
        await saveSink(tx, before, after)
        await deps.announce(tx, {
          organizationId,
          by: callerOf(context),
          action: 'updated',
          before: asResource(before),
          after: asResource(after),
          ...(changedSecrets.length > 0 && { facts: { secrets_changed: changedSecrets } }),
        })
      }
      const saved = await requireSinkWithDelivery(tx, organizationId, before.id)
      return { export: presentSink(saved, deps.now()) }
    },
  })
}

/** A request that is repeated gets its first answer, even if the change would not be valid any more: `change` refuses it. */
function tryReading<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof ApiError) return undefined
    throw error
  }
}

function requireSameType(sink: Sink, { type }: Edit) {
  if (type === undefined || type === sink.type) return
  const message = `'body.type' cannot be changed: the sink has the type ${sink.type}.`
  throw new ApiError('type_immutable', message, { param: 'body.type' })
}

function readEdited(sink: Sink, { config = {} }: Edit, deps: SinkDeps): Members {
  const stored = openKnownMembers(sink, deps.secretBox)
  return readConfig(sink.type, mergeConfig(sink.type, stored, config), deps)
}

/** `after` is `before` itself if nothing would change. */
function editSink(before: Sink, edit: Edit, deps: SinkDeps) {
  const { label = before.label, enabled = before.enabled } = edit
  const stored = openKnownMembers(before, deps.secretBox)
  const config = edit.config ? readEdited(before, edit, deps) : stored
  if (edit.config) requireAllowedAddress(before.type, config, deps)
  const changedSecrets = secretMembers[before.type].filter((name) => stored[name] !== config[name])
  const isSameConfig = isDeepStrictEqual({ ...stored }, { ...config })
  if (isSameConfig && label === before.label && enabled === before.enabled) {
    return { after: before, changedSecrets }
  }
  const sealed = isSameConfig ? {} : sealConfig(before, config, deps.secretBox)
  const after: Sink = { ...before, ...sealed, label, enabled, updatedAt: deps.now() }
  return { after, changedSecrets }
}

/** Whether objects are stored in another place from now on: a digest there cannot list those of the old one. */
const isElsewhere = (before: Sink, after: Sink) =>
  ['endpoint', 'region', 'bucket', 'prefix'].some(
    (name) => before.config[name] !== after.config[name],
  )

async function saveSink(tx: Tx, before: Sink, after: Sink) {
  await updateSink(tx, after)
  const isOther = after.enabled !== before.enabled || after.config !== before.config
  if (!isOther) return
  await endLeases(tx, after.id)
  if (isElsewhere(before, after)) await forgetObjects(tx, after.id)
  if (after.enabled || after.config !== before.config) await retryNow(tx, after.id)
}
