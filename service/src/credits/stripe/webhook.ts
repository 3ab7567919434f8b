import type { Plan } from '@gatehouse/contract/limits'
import { receiveStripeEvent, type StripeEventOutcome } from '@gatehouse/contract/webhook'
import type { FastifyInstance } from 'fastify'

import type { Announce } from '#audit/announce.ts'
import { stripeActor } from '#audit/event.ts'
import { answerText, route, sendJson } from '#http/bind.ts'
import { readJson } from '#http/read-json.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import { createGate } from '#platform/lines/gate.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'

import { applyEvent } from './apply-event.ts'
import { type PaymentEvent, readEvent } from './read-event.ts'
import type { StripeMode } from './settings.ts'
import { findHeaderFault, findSignatureFault } from './signature.ts'

export type StripeDeps = {
  db: Db
  now: Clock
  announce: Announce
  log: Log
  metrics: Metrics
  /** Without secrets there is no webhook. */
  stripe: { secrets: readonly string[]; mode: StripeMode; plans: ReadonlyMap<string, Plan> }
}

/** Serves the webhook for Stripe's events. `app` must have no other route: the hook below is for all of it. */
export function serveStripeWebhook(app: FastifyInstance, deps: StripeDeps) {
  const { secrets, mode } = deps.stripe
  // Events are applied one at a time anyway: more at once would only occupy database connections.
  const refusal = 'Too many Stripe events are waiting.'
  const gate = createGate({ atOnce: 1, waitingMax: 200, waitMs: 10_000, refusal })
  // Before the body is read: a caller without a well-formed signature need not send one.
  app.addHook('onRequest', async ({ headers }) => {
    if (secrets.length === 0) {
      throw new ApiError(
        'webhook_not_configured',
        'Set STRIPE_WEBHOOK_SECRETS to use this webhook.',
      )
    }
    refuse(findHeaderFault(headers['stripe-signature']))
  })
  route(
    app,
    receiveStripeEvent,
    async (request, reply) => {
      const body = request.bodyBytes ?? Buffer.alloc(0)
      const header = request.headers['stripe-signature']
      refuse(findSignatureFault({ header, body }, { secrets, now: deps.now() }))
      // `isOpen`: metadata may have members of any name; none of them is kept.
      const event = readEvent(readJson(body, { isOpen: true }), mode)
      const outcome = await gate('stripe', () => receive(event, request.id, deps))
      const answer = answerText(receiveStripeEvent, { received: true, outcome })
      return sendJson(reply, receiveStripeEvent.successStatus, answer)
    },
    { readsOwnBody: true },
  )
}

function refuse(fault: string | undefined) {
  if (fault) throw new ApiError('invalid_signature', fault)
}

async function receive(
  event: PaymentEvent,
  requestId: string,
  { db, now, announce, log, metrics, stripe }: StripeDeps,
): Promise<StripeEventOutcome> {
  const by = stripeActor(requestId)
  const applied = await applyEvent(event, { db, now, announce, by, plans: stripe.plans })
  const { outcome, problems } = applied
  metrics.paymentEvents.inc({ outcome })
  log.event('payment_event', { id: event.id, type: event.type, outcome })
  for (const problem of problems) {
    log.problem('payment_event_needs_attention', new Error(problem), requestId)
  }
  return outcome
}
