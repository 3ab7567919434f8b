import { z } from 'zod'

/** Whether PostgreSQL can store the text: well-formed Unicode without NUL. */
const isStorable = (value: string) => value.isWellFormed() && !value.includes('\0')

export const codePoints = (value: string) => Array.from(value).length

/** A code point has at most two UTF-16 units, so a text of more than `max * 2` units need not be counted. */
const fits = (max: number) => (value: string) => value.length <= max * 2 && codePoints(value) <= max

/** Text of `min` to `max` Unicode code points, stored as it was sent. */
export const storedText = (min: number, max: number) => bounded(z.string(), min, max)

/** Free text of `min` to `max` Unicode code points, counted after trimming. */
export const trimmedText = (min: number, max: number) => bounded(z.string().trim(), min, max)

function bounded(text: z.ZodString, min: number, max: number) {
  return text
    .min(min)
    .refine(fits(max), { error: `must be at most ${max} characters long`, abort: true })
    .refine(isStorable, { error: 'must be well-formed Unicode without NUL' })
    .meta({ maxLength: max })
}

/** The id of a resource in a request: any 1 to 200 characters. */
export const AnyId = z
  .string()
  .min(1)
  .max(200)
  .refine(isStorable, { error: 'must be well-formed Unicode without NUL' })

/** The id of a resource in an answer: a kind and 24 base32 characters. */
export const idOf = (kind: string) =>
  z.string().regex(new RegExp(`^${kind}_[0-9a-hjkmnp-tv-z]{24}$`))

/** Unix seconds, in UTC. */
export const Timestamp = z.int().min(0)

export const Warnings = z
  .array(z.string())
  .min(1)
  .max(10)
  .describe('Why a rule may not do what it says; present where there is a reason.')
