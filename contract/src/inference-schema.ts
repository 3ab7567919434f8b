import { z } from 'zod'

import { inferenceBodyLimitBytes } from './endpoint.ts'

/** Nothing in a body can be longer than the body itself (G7.11). */
export const Text = z.string().max(inferenceBodyLimitBytes)

/** A model, a tool, an id. */
export const Name = z.string().min(1).max(1000)

/** A word of an open list: clients send new ones before we know them. */
export const Kind = z.string().max(1000)

/** No list of an open request may be longer; far more than any model reads. */
const listMax = 100_000

/**
 * A list that is judged up to its first bad item: a hundred thousand complaints would take a second to
 * collect, and nobody reads more than one.
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

/** A text, or a list of its parts. Whoever explains an issue digs out of the union which part is meant. */
export const textOr = <List extends z.ZodArray>(list: List) => z.union([Text, list])

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** JSON whose shape is the model's affair: its members are not looked at, however many there are. */
export const AnyObject = z
  .unknown()
  .refine(isObject, { error: 'must be an object' })
  .meta({ type: 'object', additionalProperties: true }) as unknown as z.ZodType<
  Record<string, unknown>
>

export const tokensMax = 2_147_483_647

/** How much a model may write, or think. */
export const TokenBudget = z.int().min(1).max(tokensMax)

export const Temperature = z.number().min(0).max(2)
export const TopP = z.number().min(0).max(1)

export const FlaggedCategories = z
  .array(z.enum(['harassment', 'hate', 'illicit', 'sexual']))
  .max(100)
  .describe('Categories to block besides those that always are.')

/** What a model has read or written, in an answer. */
export const Tokens = z.int().min(0)

/** What every answer says about its cost (contract 4.10). */
export const creditMembers = {
  remaining_credits: z.int().nullable().describe('The balance after the call.'),
  estimated_credits_used: z.int().min(0),
  estimated_cost_usd: z.number().min(0),
}
