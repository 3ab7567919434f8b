import type { UsageGroup } from '@gatehouse/contract/credits'
import { sql } from 'kysely'

import type { Db } from '#platform/database.ts'

const columns = {
  day: 'day',
  label: 'label',
  project: 'project_id',
  key: 'key_id',
  model: 'model',
} as const

/** The values of an item's groups, in the order of `groups`. */
type UsageKey = readonly string[]

export type UsagePage = {
  from: string
  to: string
  groups: readonly UsageGroup[]
  after: UsageKey | undefined
  limit: number
  order: 'asc' | 'desc'
  /** The name of the label to group by, with the group `label`. */
  groupLabel: string | undefined
  /** Only projects that have it. */
  label: { name: string; value: string } | undefined
  projectId: string | undefined
  keyId: string | undefined
  model: string | undefined
}

export type UsageSum = {
  key: string[]
  requests: string
  input_tokens: string
  output_tokens: string
  credits: string
}

/** Returns one row more than `limit` if there are more. */
export async function sumUsage(
  db: Db,
  organizationId: string,
  page: UsagePage,
): Promise<UsageSum[]> {
  const { from, to, groups, after, limit, order } = page
  const names = groups.map((group) => sql.ref(columns[group]))
  const texts = groups.map((group) => sql`${sql.ref(columns[group])}::text`)
  const conditions = [
    sql`organization_id = ${organizationId}`,
    sql`day between ${from}::date and ${to}::date`,
    ...(page.label === undefined ? [] : [hasLabel(organizationId, page.label)]),
    ...(page.projectId === undefined ? [] : [sql`project_id = ${page.projectId}`]),
    ...(page.keyId === undefined ? [] : [sql`key_id = ${page.keyId}`]),
    ...(page.model === undefined ? [] : [sql`model = ${page.model}`]),
    ...(after ? [isAfter(groups, after, order)] : []),
  ]
  const sorted = names.map((name) => (order === 'asc' ? sql`${name} asc` : sql`${name} desc`))
  const { rows } = await sql<UsageSum>`
    select array[${sql.join(texts)}] as key, sum(requests)::text as requests,
      sum(input_tokens)::text as input_tokens, sum(output_tokens)::text as output_tokens,
      sum(credits)::text as credits
    from ${labelled(page)} where ${sql.join(conditions, sql` and `)}
    group by ${sql.join(names)} order by ${sql.join(sorted)} limit ${limit + 1}`.execute(db)
  return rows
}

/** The day sums, with the label that their project has now; '' without one. */
const labelled = ({ groupLabel }: UsagePage) =>
  groupLabel === undefined
    ? sql`usage_day`
    : sql`(
        select usage_day.*, coalesce(project.labels ->> ${groupLabel}, '') collate "C" as label
        from usage_day left join project
          on project.organization_id = usage_day.organization_id and project.id = usage_day.project_id
      ) as labelled`

const hasLabel = (organizationId: string, { name, value }: { name: string; value: string }) =>
  sql`project_id in (
    select id from project
    where organization_id = ${organizationId} and labels ->> ${name} = ${value}
  )`

function isAfter(groups: readonly UsageGroup[], after: UsageKey, order: 'asc' | 'desc') {
  const names = groups.map((group) => sql.ref(columns[group]))
  const values = groups.map((group, index) =>
    group === 'day' ? sql`${after[index]}::date` : sql`${after[index]}::text collate "C"`,
  )
  const side = order === 'asc' ? sql`>` : sql`<`
  return sql`(${sql.join(names)}) ${side} (${sql.join(values)})`
}
