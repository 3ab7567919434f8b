import { z } from 'zod'

import type { Endpoint } from './endpoint.ts'

/** Printable characters without spaces: what a database and a log can hold. */
const Word = z
  .string()
  .max(200)
  .regex(/^[!-~]+$/, { error: 'must be of printable characters without spaces' })

/** What every event of Stripe has; what it is about depends on its type. */
export const StripeEvent = z
  .looseObject({
    id: Word,
    type: Word,
    created: z.int().min(0).max(253_402_300_799).describe('Seconds since 1970.'),
    livemode: z.boolean().describe('false: of the test mode. Only the mode set counts.'),
    account: z
      .unknown()
      .optional()
      .describe('Of events of connected accounts, which do not count.'),
    data: z.looseObject({ object: z.unknown() }).optional(),
  })
  .meta({ id: 'StripeEvent' })
export type StripeEvent = z.infer<typeof StripeEvent>

export const StripeEventOutcome = z.enum(['applied', 'duplicate', 'ignored', 'waiting'])
export type StripeEventOutcome = z.infer<typeof StripeEventOutcome>

/** Open to everybody: the signature in the header `Stripe-Signature` says who sent it. */
export const receiveStripeEvent = {
  id: 'receiveStripeEvent',
  summary: 'Receive an event of Stripe, signed in the header Stripe-Signature',
  method: 'POST',
  path: '/v1/webhooks/stripe',
  dialect: 'admin',
  credentials: [],
  permission: null,
  body: StripeEvent,
  bodyLimitBytes: 256 * 1024,
  response: z
    .object({
      received: z.literal(true),
      outcome: StripeEventOutcome.describe(
        'waiting: it is not known yet which organization or payment it belongs to.',
      ),
    })
    .meta({ id: 'StripeEventReceipt' }),
  successStatus: 200,
  errors: ['invalid_signature', 'webhook_not_configured', 'overloaded', 'dependency_unavailable'],
  isIdempotent: false,
} as const satisfies Endpoint
