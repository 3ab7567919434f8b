import { z } from 'zod'

import { trimmedText } from '../text.ts'

// An owner may do alone what needs two persons, with a reason. It is an event of its own.

const reason = trimmedText(1, 500)
  .optional()
  .describe('Why; required with `break_glass`, and with `force` where there is one.')

const meaning =
  'An owner goes ahead without the approval of another member, where the organization asks for one.'

export type BreakGlass = { break_glass?: boolean | undefined; reason?: string | undefined }

const givesReason = ({ break_glass, reason: given }: BreakGlass) =>
  !break_glass || given !== undefined
const reasonMissing = { path: ['reason'], error: 'must be given with break_glass' }

/** The body of a change that may need an approval. */
export const glassBody = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z
    .strictObject({ ...shape, break_glass: z.boolean().optional().describe(meaning), reason })
    .refine((body) => givesReason(body as BreakGlass), reasonMissing)

/** The query of a change that may need an approval, and has no body. */
export const glassQuery = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z
    .object({
      ...shape,
      break_glass: z
        .enum(['true', 'false'])
        .transform((text) => text === 'true')
        .pipe(z.boolean())
        .optional()
        .describe(meaning),
      reason,
    })
    .refine((query) => givesReason(query as BreakGlass), reasonMissing)

/** Errors of what needs the approval of another member, where the organization asks for one. */
export const approvalErrors = ['approval_required', 'approval_outdated'] as const
