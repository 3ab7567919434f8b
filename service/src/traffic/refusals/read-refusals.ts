import {
  readRefusals,
  type Refusals,
  refusalsShown,
} from '@gatehouse/contract/organization/traffic'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'

import { otherKeys } from './refusal-counts.ts'
import { type RefusalSum, sumRefusals } from './refusal-store.ts'

const hourMs = 60 * 60 * 1000
const hoursDefault = 24

export function serveReadRefusals(app: FastifyInstance, { db, now }: { db: Db; now: Clock }) {
  bind(app, readRefusals, async ({ query }, { principal }): Promise<Refusals> => {
    const endMs = query.to === undefined ? now().getTime() : Date.parse(query.to)
    const to = new Date(Math.ceil(endMs / hourMs) * hourMs)
    const fromMs =
      query.from === undefined ? to.getTime() - hoursDefault * hourMs : Date.parse(query.from)
    const from = new Date(Math.floor(fromMs / hourMs) * hourMs)
    if (from >= to) {
      const param = 'query.from'
      throw new ApiError('invalid_parameter', `'${param}' must be earlier than to.`, { param })
    }
    const { sums, total } = await sumRefusals(db, principal.organizationId, {
      from,
      to,
      projectId: query.project_id,
      keyId: query.key_id,
      limit: refusalsShown,
    })
    return {
      object: 'organization.refusals',
      from: from.getTime() / 1000,
      to: to.getTime() / 1000,
      total,
      data: sums.map(present),
    }
  })
}

function present({ projectId, keyId, scope, metric, count, lastAt }: RefusalSum) {
  const isOther = keyId === otherKeys
  return {
    project_id: projectId || null,
    key_id: isOther ? null : keyId || null,
    is_other: isOther,
    scope: scope || null,
    metric: metric || null,
    count,
    last_at: Math.floor(lastAt.getTime() / 1000),
  }
}
