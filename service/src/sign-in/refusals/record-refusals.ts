import type { Actor } from '#audit/actor.ts'
import type { Announce } from '#audit/announce.ts'
import { gatehouse, operatorOrganizationId } from '#audit/event.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import { createId } from '#platform/id.ts'
import type { Log } from '#platform/log.ts'
import { transact } from '#platform/transaction.ts'

import { createRefusalCounts } from './refusal-counts.ts'
import { addRefusals, takeMinutes } from './refusal-store.ts'

type RefusedSignIn = {
  /** Undefined where none is known: then the event is the operator's. */
  organizationId?: string
  memberId?: string
  /** How the person tried to sign in, as in a session. */
  method: string
  /** A code, never a text of the person. */
  reason: string
  requestId: string
}
export type RecordRefusedSignIn = (refused: RefusedSignIn) => Promise<void>

type Deps = { db: Db; now: Clock; log: Log; announce: Announce }

/** How many refusals of one organization get events of their own in a minute. */
const eventsMax = 10
const minuteMs = 60_000

/**
 * Writes the events of refused sign-ins: ten a minute of each organization, in all processes together. The others are counted in
 * the database, and `sweepRefusals` writes one event for them when their minute is over. A process that knows that the ten are
 * written counts in its memory first, so that a flood costs one statement in ten seconds. No sign-in fails because of this.
 */
export function createRefusalRecorder({ db, now, log, announce }: Deps) {
  const counts = createRefusalCounts({ db, log })

  /** Returns whether there was room for another event. */
  const write = async (organizationId: string, minute: Date, refused: RefusedSignIn) =>
    transact(db, async (tx) => {
      if ((await addRefusals(tx, { organizationId, minute }, 1)) > eventsMax) return false
      const { method, reason, requestId, memberId } = refused
      const who: Actor =
        memberId === undefined ? gatehouse : { id: memberId, type: 'member', requestId }
      const by = { ...who, requestId }
      const member = memberId === undefined ? {} : { member_id: memberId }
      const id = createId('ses', now())
      const after = { id, object: 'organization.session', ...member, method, reason }
      await announce(tx, { organizationId, by, action: 'sign_in_refused', before: null, after })
      return true
    })

  return {
    async record(refused: RefusedSignIn) {
      const { organizationId = operatorOrganizationId } = refused
      const minute = new Date(Math.floor(now().getTime() / minuteMs) * minuteMs)
      if (counts.addIfFull(organizationId, minute)) return
      try {
        if (!(await write(organizationId, minute, refused))) counts.noteFull(organizationId, minute)
      } catch (error) {
        log.problem('refused_sign_in_not_recorded', error)
      }
    },
    stop: counts.stop,
  }
}

/** A minute is over for all processes when the last has written what it counted in it. */
const settledMs = 2 * minuteMs

/** Writes one event for each minute that had more refusals than events; returns how many minutes there were. */
export async function sweepRefusals({ db, now, announce }: Omit<Deps, 'log'>, rowsMax: number) {
  return transact(db, async (tx) => {
    const taken = await takeMinutes(tx, new Date(now().getTime() - settledMs), rowsMax)
    for (const { organizationId, minute, refused } of taken) {
      const count = refused - eventsMax
      if (count <= 0) continue
      const id = createId('ses', now())
      const after = { id, object: 'organization.session', minute: minute.toISOString(), count }
      const by = gatehouse
      await announce(tx, { organizationId, by, action: 'sign_in_refused', before: null, after })
    }
    return taken.length
  })
}
