import type { RequestOf } from '@gatehouse/contract/endpoint'
import {
  groupedSpansMax,
  readTraffic,
  type Traffic,
  type TrafficGroup,
  type TrafficSpan,
  trafficSpansMax,
  type TrafficSums,
} from '@gatehouse/contract/organization/traffic'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'

import { addHistogram, fromCells, type Histogram, percentilesOf } from './histogram.ts'
import { other, secondsOf, startOf } from './sums/add-up.ts'
import { type StoredTraffic, sumKeyTraffic, sumTraffic } from './traffic-store.ts'

type Query = RequestOf<typeof readTraffic>['query']

/** How many spans an answer has where the request does not say when it begins. */
const spansDefault: Record<TrafficSpan, number> = { minute: 60, hour: 24, day: 30 }

export function serveReadTraffic(app: FastifyInstance, { db, now }: { db: Db; now: Clock }) {
  bind(app, readTraffic, async ({ query }, { principal }): Promise<Traffic> => {
    const { span } = query
    const range = readRange(query, now())
    const rows = await sumRows(db, principal.organizationId, query, range)
    const showsCredits = principal.permissions.has('credits.read')
    return {
      object: 'organization.traffic',
      span,
      from: range.from.getTime() / 1000,
      to: range.to.getTime() / 1000,
      data: rows.map((row) => ({ start: row.start, ...present(row, showsCredits) })),
      total: addUpGroups(rows).map((row) => present(row, showsCredits)),
    }
  })
}

type Range = { from: Date; to: Date }

function sumRows(db: Db, organizationId: string, query: Query, range: Range) {
  const { span, group_by: groupBy, outcome, status, model, project_id: projectId } = query
  if (groupBy === 'key' || query.key_id !== undefined) {
    return sumKeyTraffic(db, organizationId, { ...range, ...readKeyQuery(query) })
  }
  const wanted = { span, groupBy, projectId, model, outcome, status }
  return sumTraffic(db, organizationId, { ...range, ...wanted })
}

/** Whole spans; 422 where there are none, or too many for one answer. */
function readRange({ span, from, to, group_by: groupBy }: Query, now: Date): Range {
  const lengthMs = secondsOf[span] * 1000
  const endMs = to === undefined ? now.getTime() : Date.parse(to)
  const endsAt = new Date(Math.ceil(endMs / lengthMs) * lengthMs)
  const beginsAt =
    from === undefined
      ? new Date(endsAt.getTime() - spansDefault[span] * lengthMs)
      : new Date(startOf(span, new Date(from)) * 1000)
  const spans = (endsAt.getTime() - beginsAt.getTime()) / lengthMs
  const most =
    groupBy === 'none' ? trafficSpansMax[span] : Math.min(trafficSpansMax[span], groupedSpansMax)
  if (spans < 1) throw invalid('query.from', 'must be earlier than to')
  if (spans > most) {
    throw invalid('query.from', `must be at most ${most} ${span}s before to in this answer`)
  }
  return { from: beginsAt, to: endsAt }
}

/** Sums by key are coarser: they know the day and the outcome. */
function readKeyQuery({ span, group_by: groupBy, key_id: keyId, outcome, ...rest }: Query) {
  if (span !== 'day') throw invalid('query.span', 'must be day for sums by key')
  const refused = (['project_id', 'model', 'status'] as const).find((name) => rest[name])
  if (refused) throw invalid(`query.${refused}`, 'cannot be combined with keys')
  if (!isKeyGroup(groupBy)) throw invalid('query.group_by', 'cannot be combined with keys')
  return { groupBy, keyId, outcome }
}

const isKeyGroup = (group: TrafficGroup): group is 'none' | 'outcome' | 'key' =>
  group === 'none' || group === 'outcome' || group === 'key'

const invalid = (param: string, what: string) =>
  new ApiError('invalid_parameter', `'${param}' ${what}.`, { param })

/** The groups over all spans, with the most calls first. */
function addUpGroups(rows: readonly StoredTraffic[]): StoredTraffic[] {
  const groups = [...Map.groupBy(rows, ({ group }) => group).values()]
  const sum = (all: readonly StoredTraffic[], name: 'calls' | 'credits' | TokenName) =>
    all.reduce((total, row) => total + row[name], 0)
  return groups
    .map((all) => ({
      start: 0,
      group: all[0]?.group ?? '',
      calls: sum(all, 'calls'),
      input_tokens: sum(all, 'input_tokens'),
      cached_input_tokens: sum(all, 'cached_input_tokens'),
      output_tokens: sum(all, 'output_tokens'),
      credits: sum(all, 'credits'),
      latency: all.flatMap(({ latency }) => latency),
      first_token: all.flatMap(({ first_token: firstToken }) => firstToken),
    }))
    .toSorted((one, another) => another.calls - one.calls)
}

type TokenName = 'input_tokens' | 'cached_input_tokens' | 'output_tokens'

function present(row: StoredTraffic, showsCredits: boolean): TrafficSums {
  const { group, calls, credits, latency, first_token } = row
  const isOther = group === other
  return {
    group: isOther ? null : group || null,
    is_other: isOther,
    calls,
    input_tokens: row.input_tokens,
    cached_input_tokens: row.cached_input_tokens,
    output_tokens: row.output_tokens,
    credits: showsCredits ? credits : null,
    latency: percentilesOf(toHistogram(latency)),
    first_token: percentilesOf(toHistogram(first_token)),
  }
}

/** Cells of several histograms may have the same bucket. */
function toHistogram(cells: readonly number[]): Histogram {
  const histogram: Histogram = new Map()
  for (const cell of cells) addHistogram(histogram, fromCells([cell]))
  return histogram
}
