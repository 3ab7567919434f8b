import { toPage } from '@gatehouse/contract/list'
import { listMemberSessions } from '@gatehouse/contract/members/session'
import type { FastifyInstance } from 'fastify'

import { findMember } from '#access/members/member-store.ts'
import { listSessionsOf } from '#access/sessions/open-session-store.ts'
import { bind } from '#http/bind.ts'
import { notFound } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'

import { presentMemberSession } from './present-member-session.ts'

type Deps = {
  db: Db
  now: Clock
  /** How long a session lasts without a request. */
  sessionIdleMs: number
}

export function serveListMemberSessions(app: FastifyInstance, { db, now, sessionIdleMs }: Deps) {
  bind(app, listMemberSessions, async ({ params }, { principal }) => {
    const { organizationId, session } = principal
    const member = await findMember(db, organizationId, params.member_id)
    if (!member) throw notFound('member')
    const rows = await listSessionsOf(db, member, { now: now(), idleMs: sessionIdleMs })
    return toPage(
      rows.map((row) => presentMemberSession(row, session?.id)),
      false,
    )
  })
}
