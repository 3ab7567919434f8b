import {
  readUsage,
  type UsageGroup,
  usageGroups,
  type UsageItem,
} from '@gatehouse/contract/credits'
import type { RequestOf } from '@gatehouse/contract/endpoint'
import { pageOf } from '@gatehouse/contract/list'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'

import { toCount, toUsd } from './amounts-in-json.ts'
import { sumUsage, type UsageSum } from './read-store.ts'
import { readUsageCursor, usageCursor } from './usage-cursor.ts'

type Query = RequestOf<typeof readUsage>['query']

const dayMs = 24 * 60 * 60 * 1000
const daysUnlessTold = 30
const daysMax = 366

export function serveReadUsage(app: FastifyInstance, { db, now }: { db: Db; now: Clock }) {
  bind(app, readUsage, async ({ query }, { principal: { organizationId } }) => {
    const { limit, order, after, project_id: projectId, key_id: keyId, model } = query
    const groups = usageGroups.filter((group) => query.group_by.split(',').includes(group))
    const sums = await sumUsage(db, organizationId, {
      ...{ ...readDays(query, now()), groups, limit, order, projectId, keyId, model },
      after: after === undefined ? undefined : readUsageCursor(after, groups),
    })
    return pageOf(
      sums.map((sum) => present(sum, groups)),
      limit,
    )
  })
}

/** Both days are included. */
function readDays({ from, to }: Query, now: Date): { from: string; to: string } {
  const lastMs = to === undefined ? now.getTime() : Date.parse(to)
  const last = toDay(lastMs)
  const first = from ?? toDay(lastMs - (daysUnlessTold - 1) * dayMs)
  const days = (Date.parse(last) - Date.parse(first)) / dayMs + 1
  const param = from === undefined ? 'query.to' : 'query.from'
  if (days < 1) {
    throw new ApiError('invalid_parameter', `'${param}' must not be later than to.`, { param })
  }
  if (days <= daysMax) return { from: first, to: last }
  const tooMany = `'${param}' must be at most ${daysMax} days before to.`
  throw new ApiError('invalid_parameter', tooMany, { param })
}

const toDay = (timeMs: number) => new Date(timeMs).toISOString().slice(0, 10)

function present({ key, ...sum }: UsageSum, groups: readonly UsageGroup[]): UsageItem {
  const of = (group: UsageGroup) => key[groups.indexOf(group)] || null // '': it belongs to no project
  return {
    ...{ id: usageCursor(groups, key), object: 'organization.credits.usage' },
    ...{ day: of('day'), project_id: of('project'), key_id: of('key'), model: of('model') },
    requests: toCount(sum.requests),
    input_tokens: toCount(sum.input_tokens),
    output_tokens: toCount(sum.output_tokens),
    credits: toCount(sum.credits),
    cost_usd: toUsd(sum.credits),
  }
}
