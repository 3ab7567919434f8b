import {
  readUsage,
  type UsageGroup,
  usageGroups,
  type UsageItem,
} from '@gatehouse/contract/credits'
import { pageOf } from '@gatehouse/contract/list'
import type { FastifyInstance } from 'fastify'

import { toSafeNumber, toUsd } from '#credits/money.ts'
import { bind } from '#http/bind.ts'
import { readDays } from '#http/read-days.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'

import { readUsageCursor, usageCursor } from './usage-cursor.ts'
import { sumUsage, type UsageSum } from './usage-day-store.ts'

const daysMax = 366

export function serveReadUsage(app: FastifyInstance, { db, now }: { db: Db; now: Clock }) {
  bind(app, readUsage, async ({ query }, { principal: { organizationId } }) => {
    const { limit, order, after, project_id: projectId, key_id: keyId, model } = query
    const groups = usageGroups.filter((group) => query.group_by.split(',').includes(group))
    const sums = await sumUsage(db, organizationId, {
      ...readDays(query, now(), daysMax),
      groups,
      limit,
      order,
      projectId,
      keyId,
      model,
      after: after === undefined ? undefined : readUsageCursor(after, groups),
    })
    return pageOf(
      sums.map((sum) => present(sum, groups)),
      limit,
    )
  })
}

function present({ key, ...sum }: UsageSum, groups: readonly UsageGroup[]): UsageItem {
  const of = (group: UsageGroup) => key[groups.indexOf(group)] || null // '' is a call without a project
  return {
    id: usageCursor(groups, key),
    object: 'organization.credits.usage',
    day: of('day'),
    project_id: of('project'),
    key_id: of('key'),
    model: of('model'),
    requests: toSafeNumber(sum.requests),
    input_tokens: toSafeNumber(sum.input_tokens),
    output_tokens: toSafeNumber(sum.output_tokens),
    credits: toSafeNumber(sum.credits),
    cost_usd: toUsd(sum.credits),
  }
}
