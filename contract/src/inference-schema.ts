import { z } from 'zod'

import { inferenceBodyLimitBytes } from './endpoint.ts'

/** Text of any length: the limit of the whole body bounds it. */
export const Text = z.string().max(inferenceBodyLimitBytes)

/** The name of a model or a tool, or an id. */
export const Name = z.string().min(1).max(1000)

/** A value of an open enumeration: clients may send values that the gateway does not know yet. */
export const Kind = z.string().max(1000)

/** The largest number of items in any list of a model request. */
const listMax = 100_000

/**
 * A list that is validated up to its first invalid item: collecting the issues of a hundred thousand items
 * would take a second, and only the first is reported.
 */
export function listOf<Item extends z.ZodType>(item: Item, { min = 0 } = {}): z.ZodArray<Item> {
  const list = z
    .array(z.unknown())
    .min(min)
    .max(listMax)
    .check(({ value, issues }) => {
      for (const [index, each] of value.entries()) {
        const result = item.safeParse(each)
        if (result.success) continue
        const [first] = result.error.issues
        if (first) issues.push({ ...first, path: [index, ...first.path], input: each } as never)
        return
      }
    })
  const { $schema: _, ...items } = z.toJSONSchema(item, { io: 'input' })
  return list.meta({ items }) as unknown as z.ZodArray<Item>
}

/** A text, or a list of parts. `meantIssues` in http/validate.ts finds the issues of the intended alternative. */
export const textOr = <List extends z.ZodArray>(list: List) => z.union([Text, list])

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** An object whose members are passed on without validation. */
export const AnyObject = z
  .unknown()
  .refine(isObject, { error: 'must be an object' })
  .meta({ type: 'object', additionalProperties: true }) as unknown as z.ZodType<
  Record<string, unknown>
>

export const tokensMax = 2_147_483_647

/** A limit on output or reasoning tokens. */
export const TokenBudget = z.int().min(1).max(tokensMax)

export const Temperature = z.number().min(0).max(2)
export const TopP = z.number().min(0).max(1)

export const FlaggedCategories = z
  .array(z.enum(['harassment', 'hate', 'illicit', 'sexual']))
  .max(100)
  .describe('Categories to block in addition to those that are always blocked.')

/** A number of tokens in an answer. */
export const Tokens = z.int().min(0)

/** The cost members of every answer (docs/specification/inference.md#receipts). */
export const creditMembers = {
  remaining_credits: z.int().nullable().describe('The balance after the call.'),
  estimated_credits_used: z.int().min(0),
  estimated_cost_usd: z.number().min(0),
}
