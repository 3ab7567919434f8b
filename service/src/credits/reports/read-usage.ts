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
    const asked = query.group_by.split(',')
    const groups = usageGroups.filter((group) => asked.some((each) => nameOf(each) === group))
    // With its name, so that the cursor of one label continues no report of another.
    const wanted = groups.map((group) => asked.find((each) => nameOf(each) === group) ?? group)
    const sums = await sumUsage(db, organizationId, {
      ...readDays(query, now(), daysMax),
      groups,
      groupLabel: wanted.find(isLabel)?.slice(labelPrefix.length),
      label: readLabel(query.label),
      limit,
      order,
      projectId,
      keyId,
      model,
      after: after === undefined ? undefined : readUsageCursor(after, wanted),
    })
    return pageOf(
      sums.map((sum) => present(sum, groups, wanted)),
      limit,
    )
  })
}

const labelPrefix = 'label:'
const isLabel = (asked: string) => asked.startsWith(labelPrefix)
const nameOf = (asked: string) => (isLabel(asked) ? 'label' : asked)

/** A name has no equals sign. */
function readLabel(given: string | undefined) {
  if (given === undefined) return undefined
  const end = given.indexOf('=')
  return { name: given.slice(0, end), value: given.slice(end + 1) }
}

function present(
  { key, ...sum }: UsageSum,
  groups: readonly UsageGroup[],
  wanted: readonly string[],
): UsageItem {
  const of = (group: UsageGroup) => key[groups.indexOf(group)] || null // '' is a call without a project, or a project without the label
  return {
    id: usageCursor(wanted, key),
    object: 'organization.credits.usage',
    day: of('day'),
    label: of('label'),
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
