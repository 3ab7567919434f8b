import { z } from 'zod'

import type { Endpoint } from './endpoint.ts'

/** Printable ASCII without spaces, which is safe in the database and in the log. */
const Word = z
  .string()
  .max(200)
  .regex(/^[!-~]+$/, { error: 'must be of printable characters without spaces' })

/** The members that every event of Stripe has; `data.object` depends on its type. */
export const StripeEvent = z
  .looseObject({
    id: Word,
    type: Word,
    created: z.int().min(0).max(253_402_300_799).describe('Seconds since 1970.'),
    livemode: z
      .boolean()
      .describe('false in the test mode. Events of the other mode than STRIPE_MODE are ignored.'),
    account: z
      .unknown()
      .optional()
      .describe('Present in events of connected accounts, which are ignored.'),
    data: z.looseObject({ object: z.unknown() }).optional(),
  })
  .meta({ id: 'StripeEvent' })
export type StripeEvent = z.infer<typeof StripeEvent>

export const StripeEventOutcome = z.enum(['applied', 'duplicate', 'ignored', 'waiting'])
export type StripeEventOutcome = z.infer<typeof StripeEventOutcome>

/** Public: the signature in the header `Stripe-Signature` authenticates the sender. */
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
        'waiting: the organization or payment it belongs to is not known yet.',
      ),
    })
    .meta({ id: 'StripeEventReceipt' }),
  successStatus: 200,
  errors: [
    'length_required',
    'invalid_signature',
    'webhook_not_configured',
    'overloaded',
    'dependency_unavailable',
  ],
  isIdempotent: false,
} as const satisfies Endpoint
