import type { FastifyInstance } from 'fastify'

import { type Authentication, type CountCall, guard } from '#access/guard.ts'
import { type ErrorVoice, speakErrors } from '#http/error-dialect.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'

import { serveListLedger } from './list-ledger.ts'
import { type ReadCreditsTools, serveReadCredits } from './read-credits.ts'
import { serveReadUsage } from './read-usage.ts'

export type CreditTools = ErrorVoice &
  ReadCreditsTools & {
    db: Db
    now: Clock
    authentication: Authentication
    limitCreditRead: CountCall
  }

/** For administrators: where the credits went. */
export function serveCredits(app: FastifyInstance, tools: CreditTools) {
  serveListLedger(app, tools)
  serveReadUsage(app, tools)
}

/** For model callers: what is left. Reading it is limited by itself (contract 8.3). */
export function serveCreditBalance(app: FastifyInstance, tools: CreditTools) {
  void app.register(async (scope) => {
    speakErrors(scope, 'openai', tools)
    guard(scope, tools.authentication, tools.limitCreditRead)
    serveReadCredits(scope, tools)
  })
}
