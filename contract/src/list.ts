import { z } from 'zod'

import { AnyId } from './text.ts'

/** A number in a query string: digits only, so that '', '1e2' and ' 5' are refused. */
export const integerInQuery = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d{1,10}$/, { error: 'must be a whole number', abort: true })
    .transform(Number)
    .pipe(z.int().min(min).max(max))

/** A day in a query string. */
export const Day = z.iso
  .date({ error: 'must be a day as in 2026-01-31', abort: true })
  .refine((day) => day >= '2000-01-01', { error: 'must not be before 2000-01-01' })

/** The query of every list. */
export const ListQuery = z.object({
  after: AnyId.optional().describe('The last_id of the page before.'),
  limit: integerInQuery(1, 100).default(20).describe('How many items a page has at most.'),
  order: z.enum(['asc', 'desc']).default('asc').describe('By time of creation.'),
})
export type ListQuery = z.output<typeof ListQuery>

/** The list envelope; first_id and last_id are null on an empty page. */
export const listOf = <Item extends z.ZodType>(item: Item) =>
  z.object({
    object: z.literal('list'),
    data: z.array(item).max(100),
    has_more: z.boolean(),
    first_id: z.string().nullable(),
    last_id: z.string().nullable(),
  })

/** Builds a page from up to `limit + 1` rows: the extra row only shows that there is a next page. */
export const pageOf = <Item extends { id: string }>(rows: readonly Item[], limit: number) =>
  toPage(rows.slice(0, limit), rows.length > limit)

/** Builds a page from its rows. */
export function toPage<Item extends { id: string }>(data: Item[], hasMore: boolean) {
  return {
    object: 'list' as const,
    data,
    has_more: hasMore,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
  }
}
