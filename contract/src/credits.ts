import { z } from 'zod'

import { adminBodyLimitBytes, adminEndpoint, type Endpoint } from './endpoint.ts'
import { Day, integerInQuery, listOf, ListQuery } from './list.ts'
import { labelName, labelValue } from './organization/labels.ts'
import { AnyId, storedText, Timestamp } from './text.ts'

/** One credit is one micro-USD. Amounts stay exact: 2^53 credits are nine thousand million dollars. */
const Credits = z.int()
const Usd = z.number().describe('US dollars, with at most six decimals.')

const CreditBalance = z
  .object({
    data: z.object({
      total_credits: Usd.describe('Everything ever paid and granted, in US dollars.'),
      total_usage: Usd.describe('Everything ever charged, in US dollars.'),
      remaining_credits: Credits.nullable().describe(
        'The balance, in credits. Calls that are under way may hold a part of it. Null where calls are not paid from a balance.',
      ),
    }),
  })
  .meta({ id: 'CreditBalance' })
export type CreditBalance = z.infer<typeof CreditBalance>

export const readCredits = {
  id: 'readCredits',
  summary: 'Read the balance; the answer is at most 5 seconds old',
  method: 'GET',
  path: '/v1/credits',
  dialect: 'openai',
  credentials: ['project_key'],
  permission: 'credits.read',
  bodyLimitBytes: adminBodyLimitBytes,
  response: CreditBalance,
  successStatus: 200,
  errors: ['credit_balance_unavailable'],
  isIdempotent: false,
} as const satisfies Endpoint

/** `writeoff`: what a call cost beyond the balance, which is not charged. `refund`: also what undoes one. */
export const LedgerKind = z.enum([
  'usage',
  'late_usage',
  'void_unknown',
  'writeoff',
  'payment',
  'grant',
  'refund',
] as const)
export type LedgerKind = z.infer<typeof LedgerKind>

export const LedgerAccount = z.enum([
  'wallet',
  'revenue',
  'topup',
  'promo',
  'refund',
  'writeoff',
] as const)

const UsdPerMillion = z.string().describe('US dollars per million tokens, as a decimal number.')
const Tokens = z.int().min(0).nullable()

export const LedgerEntry = z
  .object({
    id: z.string(),
    object: z.literal('organization.credits.ledger_entry'),
    kind: LedgerKind,
    amount: Credits.min(0).describe('Credits that moved from one account to the other.'),
    debit: LedgerAccount.describe('Where they came from. `wallet` is the balance.'),
    credit: LedgerAccount.describe('Where they went.'),
    request_id: z.string().nullable().describe('The call; null where no call is the cause.'),
    project_id: z.string().nullable(),
    key_id: z.string().nullable(),
    model: z.string().nullable(),
    input_tokens: Tokens.describe('Everything that was read, the next two included.'),
    cached_input_tokens: Tokens,
    cache_write_tokens: Tokens,
    cache_write_1h_tokens: Tokens.describe('Those of the ones before that are cached for an hour.'),
    output_tokens: Tokens,
    web_searches: Tokens.describe('Web searches of the provider that have a price.'),
    usage_source: z
      .enum(['upstream', 'local-estimate', 'time-estimate'])
      .nullable()
      .describe('Who counted the tokens: the provider, or the gateway where that could not be.'),
    price_version: z.string().nullable().describe('Equal prices have equal versions.'),
    prices: z
      .object({
        input: UsdPerMillion,
        cached_input: UsdPerMillion,
        cache_write: UsdPerMillion,
        cache_write_1h: UsdPerMillion.nullable().describe('Null: as `cache_write`.'),
        output: UsdPerMillion,
        web_search: z.string().nullable().describe('US dollars per search; null: none.'),
      })
      .nullable()
      .describe(
        'tokens x price / 1,000,000, summed over the classes, plus the searches, is the cost in US dollars; times ' +
          '1,000,000 and rounded up once, it is the amount (with that of the `writeoff`, if there is one).',
      ),
    created_at: Timestamp,
  })
  .meta({ id: 'LedgerEntry' })
export type LedgerEntry = z.infer<typeof LedgerEntry>

const Moment = z.iso
  .datetime({ offset: true, error: 'must be a date-time as in 2026-01-31T00:00:00Z', abort: true })
  .max(40)

const isRising = ({ from, to }: { from?: string | undefined; to?: string | undefined }) =>
  from === undefined || to === undefined || Date.parse(from) < Date.parse(to)

export const listLedgerEntries = adminEndpoint({
  id: 'listLedgerEntries',
  summary: 'List every movement of credits, with all that is needed to compute a charge again',
  method: 'GET',
  path: '/v1/organization/credits/ledger',
  permission: 'credits.read',
  query: ListQuery.extend({
    after: storedText(1, 220).optional().describe('The last_id of the page before.'),
    project_id: AnyId.optional(),
    kind: LedgerKind.optional(),
    from: Moment.optional().describe('The first moment; RFC 3339.'),
    to: Moment.optional().describe('The moment after the last; RFC 3339.'),
  }).refine(isRising, { path: ['to'], error: 'must be later than from' }),
  response: listOf(LedgerEntry).meta({ id: 'LedgerEntryList' }),
  errors: ['invalid_cursor'],
})

/** In the order in which items are sorted. */
export const usageGroups = ['day', 'label', 'project', 'key', 'model'] as const
export type UsageGroup = (typeof usageGroups)[number]

const group = `(day|label:${labelName}|project|key|model)`
const Count = z.int().min(0)

export const UsageItem = z
  .object({
    id: z.string().describe('Names the item for `after`, and nothing else.'),
    object: z.literal('organization.credits.usage'),
    day: z.iso.date().nullable().describe('In UTC; null unless grouped by day.'),
    label: z
      .string()
      .nullable()
      .describe('null unless grouped by a label, and for projects that do not have it.'),
    project_id: z.string().nullable().describe('null unless grouped by project.'),
    key_id: z.string().nullable().describe('null unless grouped by key.'),
    model: z.string().nullable().describe('null unless grouped by model.'),
    requests: Count,
    input_tokens: Count,
    output_tokens: Count,
    credits: Credits.min(0),
    cost_usd: Usd,
  })
  .meta({ id: 'UsageItem' })
export type UsageItem = z.infer<typeof UsageItem>

/** `iss|sub` of a token is as long as this; a cursor holds one of each. */
const callerMaxLength = 701
const cursorMaxLength = 4000

export const readUsage = adminEndpoint({
  id: 'readUsage',
  summary: 'Read what was used and what it cost, summed by day, label, project, key and model',
  method: 'GET',
  path: '/v1/organization/usage',
  permission: 'credits.read',
  query: ListQuery.extend({
    after: storedText(1, cursorMaxLength).optional().describe('The last_id of the page before.'),
    limit: integerInQuery(1, 100).default(100).describe('How many items a page has at most.'),
    order: z
      .enum(['asc', 'desc'])
      .default('asc')
      .describe('By day, label, project, key and model.'),
    from: Day.optional().describe('The first day, in UTC. Without it: 30 days up to the last.'),
    to: Day.optional().describe('The last day, in UTC. Without it: today. At most 366 days.'),
    group_by: z
      .string()
      .max(200)
      .regex(new RegExp(`^${group}(,${group}){0,4}$`), {
        error: 'must be some of day, label:<name>, project, key and model, separated by commas',
      })
      .refine((groups) => groups.split('label:').length <= 2, {
        error: 'must name at most one label',
      })
      .default('day')
      .describe(
        'What to sum by: some of day, label:<name>, project, key and model, separated by commas. Labels are those that projects have now.',
      ),
    project_id: AnyId.optional(),
    label: z
      .string()
      .max(200)
      .regex(new RegExp(`^${labelName}=${labelValue}$`), {
        error: 'must be the name and the value of a label, as in cost_center=4711',
      })
      .optional()
      .describe('Only projects that have this label now, as in cost_center=4711.'),
    key_id: storedText(1, callerMaxLength).optional(),
    model: AnyId.optional(),
  }),
  response: listOf(UsageItem).meta({ id: 'UsageList' }),
  errors: ['invalid_cursor'],
})
