import type { FastifyRequest } from 'fastify'

import { operatorOrganizationId } from '#audit/event.ts'
import type { NoteRefusal } from '#http/error-dialect.ts'
import type { ApiError } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import { createUuid } from '#platform/id.ts'
import { createLogThrottle } from '#platform/log-throttle.ts'
import type { Log } from '#platform/log.ts'
import { transact } from '#platform/transaction.ts'

import { createUnrecordedCounts, type Unrecorded, type RefusalCount } from './refusal-counts.ts'
import { addUnrecorded } from './refusal-store.ts'

const writeEveryMs = 60_000

type Deps = { db: Db; now: Clock; log: Log }

/**
 * Counts refusals that leave no event, and writes the counts once a minute. While the database is away one batch waits, with the
 * id that makes it count once, and what is refused meanwhile is added up as before: neither grows. A process that dies loses what
 * it has not written.
 */
export function createRefusalCounter({ db, now, log }: Deps) {
  const counts = createUnrecordedCounts(operatorOrganizationId)
  const report = createLogThrottle({ log, now })
  let waiting: { id: string; rows: RefusalCount[] } | undefined
  let writing: Promise<void> | undefined

  async function write() {
    if (!waiting && counts.size() > 0) waiting = { id: createUuid(now()), rows: counts.take() }
    const batch = waiting
    if (!batch) return
    try {
      await transact(db, (tx) => addUnrecorded(tx, batch.id, batch.rows))
      waiting = undefined
    } catch (error) {
      report('refusals_not_written', error)
    }
  }

  /** One at a time. */
  const flush = () => (writing ??= write().finally(() => (writing = undefined)))
  const timer = setInterval(() => void flush(), writeEveryMs).unref()
  const note: NoteRefusal = (request, error) => {
    const refusal = toRefusal(request, error)
    if (refusal) counts.note(refusal, now())
  }
  return {
    note,
    flush,
    async stop() {
      clearInterval(timer)
      await flush()
      // Once more, for what was refused while a batch waited.
      if (!waiting) await flush()
    },
  }
}

/** Undefined if it is no refusal, or leaves an event. */
function toRefusal(request: FastifyRequest, error: ApiError): Unrecorded | undefined {
  const reason = error.refusedBy ?? reasonOf(error, request)
  if (!reason) return undefined
  const { principal } = request
  const caller = error.refusedCaller ?? (principal?.kind === 'anonymous' ? null : principal)
  return {
    organizationId: caller?.organizationId ?? operatorOrganizationId,
    projectId: caller?.projectId ?? '',
    keyId: caller?.credentialId ?? '',
    scope: reason.scope,
    metric: reason.metric,
  }
}

/** Of errors that do not say it themselves. A call that the limiter has counted leaves an event. */
function reasonOf({ status, code }: ApiError, { isCounted }: FastifyRequest) {
  if (status === 401) return { scope: 'credential', metric: code }
  const isShed = code === 'overloaded' && !isCounted
  return isShed ? { scope: 'process', metric: 'overload' } : undefined
}
