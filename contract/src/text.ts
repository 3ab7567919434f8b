import { z } from 'zod'

/** Text that every store can keep: well-formed Unicode without NUL. */
const isStorable = (value: string) => value.isWellFormed() && !value.includes('\0')

export const codePoints = (value: string) => Array.from(value).length

/** A code point has at most two UTF-16 units, so most texts that are too long need no counting. */
const fits = (max: number) => (value: string) => value.length <= max * 2 && codePoints(value) <= max

/** Text of `min` to `max` Unicode code points, kept as it was sent (G2.18). */
export const storedText = (min: number, max: number) => bounded(z.string(), min, max)

/** Free text of `min` to `max` Unicode code points, counted after trimming (G2.10). */
export const trimmedText = (min: number, max: number) => bounded(z.string().trim(), min, max)

function bounded(text: z.ZodString, min: number, max: number) {
  return text
    .min(min)
    .refine(fits(max), { error: `must be at most ${max} characters long`, abort: true })
    .refine(isStorable, { error: 'must be well-formed Unicode without NUL' })
    .meta({ maxLength: max })
}

/** The id of a resource as a caller sends it: any 1 to 200 characters, known or not. */
export const AnyId = z
  .string()
  .min(1)
  .max(200)
  .refine(isStorable, { error: 'must be well-formed Unicode without NUL' })

/** The id of a resource as we answer it: a kind and 24 base32 characters. */
export const idOf = (kind: string) =>
  z.string().regex(new RegExp(`^${kind}_[0-9a-hjkmnp-tv-z]{24}$`))

/** Unix seconds (G2.1). */
export const Timestamp = z.int().min(0)
