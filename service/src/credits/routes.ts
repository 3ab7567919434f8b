import type { FastifyInstance } from 'fastify'

import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'

import { type ReadCreditsDeps, serveReadCredits } from './balance/read-credits.ts'
import { serveListLedger } from './reports/list-ledger.ts'
import { serveReadUsage } from './reports/read-usage.ts'

/** For administrators: the ledger and the usage reports. */
export function serveCredits(app: FastifyInstance, deps: { db: Db; now: Clock }) {
  serveListLedger(app, deps)
  serveReadUsage(app, deps)
}

/** For callers of models: the balance. */
export function serveCreditBalance(app: FastifyInstance, deps: ReadCreditsDeps) {
  serveReadCredits(app, deps)
}
