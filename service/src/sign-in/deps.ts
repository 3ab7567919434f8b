import type { FailedAttempts } from '#access/failed-attempts.ts'
import type { Authentication } from '#access/guard.ts'
import type { SessionDeps } from '#access/sessions/start-session.ts'
import type { Principal } from '#http/principal.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'

import type { CodeGuesses } from './device/code-guesses.ts'
import type { RecordRefusedSignIn } from './refusals/record-refusals.ts'

/** A way to sign in that the operator has set up: its id is part of the path /auth/<id>. */
type OfferedProvider = { readonly id: string; readonly name: string }

/** What the pages of sign-in depend on. */
export type SignInDeps = SessionDeps & {
  db: Db
  now: Clock
  log: Log
  authentication: Authentication
  /** Whether administrator keys and the operator's links sign in. */
  isWithKeys: boolean
  listProviders: () => readonly OfferedProvider[]
  recordRefusal: RecordRefusedSignIn
  metrics: Metrics
  /** Of secrets of links and devices, by address. */
  linkGuesses: FailedAttempts
  codeGuesses: CodeGuesses
  /** Where a browser signs out elsewhere too, after its session has ended; null: nowhere. */
  findWayOut: (caller: Principal, publicUrl: string) => Promise<string | null>
}
