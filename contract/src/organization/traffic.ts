import { z } from 'zod'

import { adminEndpoint } from '../endpoint.ts'
import { Moment } from '../exports/audit-event.ts'
import { AnyId, storedText, Timestamp } from '../text.ts'

/** How long a sum covers, and for how many days such sums are kept. */
export const trafficSpans = ['minute', 'hour', 'day'] as const
export type TrafficSpan = (typeof trafficSpans)[number]

/** How many spans an answer has at most. */
export const trafficSpansMax = { minute: 720, hour: 744, day: 400 } as const satisfies Record<
  TrafficSpan,
  number
>
/** The same of an answer in groups, */
export const groupedSpansMax = 400
/** and how many groups are named, those with the most calls; all others are one more. */
export const trafficGroupsMax = 8

const trafficGroups = ['none', 'project', 'model', 'outcome', 'status', 'key'] as const
export type TrafficGroup = (typeof trafficGroups)[number]

const Count = z.int().min(0)
const Ms = z.int().min(0)

const Times = z
  .object({
    count: Count.describe('How many calls say this time.'),
    p50_ms: Ms,
    p95_ms: Ms,
    p99_ms: Ms,
  })
  .nullable()
  .describe('Percentiles, each within 10 % of the true one. null: no call says this time.')

const sums = {
  group: z
    .string()
    .nullable()
    .describe(
      'The project, the model, the outcome, the class of the status or the key; null: the calls have none, or are not grouped.',
    ),
  is_other: z.boolean().describe('All calls of further groups together; `group` is null then.'),
  calls: Count,
  input_tokens: Count,
  cached_input_tokens: Count,
  output_tokens: Count,
  credits: Count.nullable().describe('null without the permission `credits.read`.'),
  latency: Times.describe('From the arrival of a request to the end of its call.'),
  first_token: Times.describe('To the first token of a streamed answer that was sent.'),
}

const TrafficTotal = z.object(sums).meta({ id: 'TrafficTotal' })
const TrafficSpanSum = z
  .object({ start: Timestamp.describe('The beginning of the span.'), ...sums })
  .meta({ id: 'TrafficSpanSum' })

const Traffic = z
  .object({
    object: z.literal('organization.traffic'),
    span: z.enum(trafficSpans),
    from: Timestamp.describe('The beginning of the first span.'),
    to: Timestamp.describe('The end of the last span.'),
    data: z
      .array(TrafficSpanSum)
      .max(groupedSpansMax * (trafficGroupsMax + 1))
      .describe('By time, then by calls of their group. A span without calls has no item.'),
    total: z
      .array(TrafficTotal)
      .max(trafficGroupsMax + 1)
      .describe('The same over all spans, with the most calls first.'),
  })
  .meta({ id: 'Traffic' })
export type Traffic = z.infer<typeof Traffic>
export type TrafficSums = z.infer<typeof TrafficTotal>

export const readTraffic = adminEndpoint({
  id: 'readTraffic',
  summary:
    'Read how many calls there were, how they ended and how long they took, by minute, hour or day',
  method: 'GET',
  path: '/v1/organization/traffic',
  permission: 'projects.read',
  query: z.object({
    span: z.enum(trafficSpans).default('hour').describe('What to sum by.'),
    from: Moment.optional().describe(
      'The first moment, in RFC 3339, or a day; the span that it is in is the first. Without it: an hour by minutes, a day by hours, or 30 days.',
    ),
    to: Moment.optional().describe('The moment after the last. Without it: now.'),
    group_by: z
      .enum(trafficGroups)
      .default('none')
      .describe('`status` is the class, such as 4xx. `key` is summed by day only.'),
    project_id: AnyId.optional(),
    model: AnyId.optional(),
    outcome: AnyId.optional(),
    status: z.enum(['2xx', '4xx', '5xx', 'none']).optional(),
    key_id: storedText(1, 701).optional().describe('By day only.'),
  }),
  response: Traffic,
  isConditional: true,
  errors: [],
})

/** How many refused callers an answer has at most. */
export const refusalsShown = 100

const Refusals = z
  .object({
    object: z.literal('organization.refusals'),
    from: Timestamp.describe('The beginning of the first hour.'),
    to: Timestamp.describe('The end of the last hour.'),
    total: Count.describe('All refusals, also those that are not listed.'),
    data: z
      .array(
        z.object({
          project_id: z.string().nullable(),
          key_id: z
            .string()
            .nullable()
            .describe('The key, issuer and subject of a token, or the member.'),
          is_other: z
            .boolean()
            .describe(
              'All callers of a minute for whom there was no room; the members beside it are null.',
            ),
          scope: z
            .string()
            .nullable()
            .describe('Whose limit it was: organization, project, key, credential or process.'),
          metric: z
            .string()
            .nullable()
            .describe(
              'What was limited, such as requests_per_minute; of a credential the code of the error; overload: the process had too much to do.',
            ),
          count: z.int().min(1),
          last_at: Timestamp.describe('The last time.'),
        }),
      )
      .max(refusalsShown)
      .describe('Those with the most refusals first.'),
  })
  .meta({ id: 'Refusals' })
export type Refusals = z.infer<typeof Refusals>

export const readRefusals = adminEndpoint({
  id: 'readRefusals',
  summary: 'Read who was refused before a call was counted, how often and why',
  method: 'GET',
  path: '/v1/organization/refusals',
  permission: 'projects.read',
  query: z.object({
    from: Moment.optional().describe(
      'The first moment; the hour that it is in is the first. Without it: 24 hours.',
    ),
    to: Moment.optional().describe('The moment after the last. Without it: now.'),
    project_id: AnyId.optional(),
    key_id: storedText(1, 701).optional(),
  }),
  response: Refusals,
  isConditional: true,
  errors: [],
})
