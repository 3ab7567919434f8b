import { z } from 'zod'

/** A separator of lists, such as a comma, is none of its characters: two headers of a request must not look like one name. */
const SetName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,79}$/, {
  error:
    'must be 1 to 80 of the characters A to Z, a to z, 0 to 9 and . _ : / @ -, and start with a letter or a digit',
})

/** The member of every object that a set can manage (docs/specification/managed-objects.md). */
export const ManagedBy = z
  .string()
  .nullable()
  .describe('The set that manages it: only requests of that set change it. null: no set does.')

const SetHeader = z.object({
  'X-Gatehouse-Set': SetName.optional().describe(
    'The set for which the request is made. Without it, for none.',
  ),
})

const TakeOver = z.object({
  take_over: z
    .enum(['true', 'false'])
    .default('false')
    .transform((text) => text === 'true')
    .pipe(z.boolean())
    .describe(
      'Change it although another set manages it, or none. From then on the set of the request manages it; without one, none does.',
    ),
})

/** For an endpoint that creates an object which a set can manage. */
export const createsManaged = { managed: 'create', headers: SetHeader } as const

/** For an endpoint that changes or deletes one. */
export const changesManaged = { managed: 'change', headers: SetHeader, query: TakeOver } as const

/** For an endpoint that acts on one, and that its set cannot keep from anyone. */
export const exemptFromSets = { managed: 'exempt' } as const
