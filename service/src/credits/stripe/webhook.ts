import type { Plan } from '@gatehouse/contract/limits'
import { receiveStripeEvent, type StripeEventOutcome } from '@gatehouse/contract/webhook'
import type { FastifyInstance } from 'fastify'

import type { Announce } from '#audit/announce.ts'
import { stripe as byStripe } from '#audit/event.ts'
import { answerText, route, sendJson } from '#http/bind.ts'
import { readJson } from '#http/read-json.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import { createGate } from '#platform/gate.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'

import { applyEvent } from './apply-event.ts'
import { type PaymentEvent, readEvent } from './read-event.ts'
import type { StripeMode } from './settings.ts'
import { faultOfHeader, faultOfSignature } from './signature.ts'

export type StripeTools = {
  db: Db
  now: Clock
  announce: Announce
  log: Log
  metrics: Metrics
  /** Without secrets there is no webhook. */
  stripe: { secrets: readonly string[]; mode: StripeMode; plans: ReadonlyMap<string, Plan> }
}

/** Serves the webhook that Stripe tells payments, refunds and subscriptions to; `app` has no other route. */
export function serveStripeWebhook(app: FastifyInstance, tools: StripeTools) {
  const { secrets, mode } = tools.stripe
  // They are applied one at a time anyway: more would only hold connections that others need.
  const refusal = 'Too many events of Stripe wait in line.'
  const gate = createGate({ atOnce: 1, waitingMax: 200, waitMs: 10_000, refusal })
  // Before the body: whoever cannot have signed it need not send it.
  app.addHook('onRequest', async ({ headers }) => {
    if (secrets.length === 0) {
      throw new ApiError('webhook_not_configured', 'Set STRIPE_WEBHOOK_SECRETS to use this.')
    }
    refuse(faultOfHeader(headers['stripe-signature']))
  })
  route(
    app,
    receiveStripeEvent,
    async (request, reply) => {
      const body = request.bodyBytes ?? Buffer.alloc(0)
      const header = request.headers['stripe-signature']
      refuse(faultOfSignature({ header, body }, { secrets, now: tools.now() }))
      // Open: metadata has whatever names somebody likes, and none of them is kept.
      const event = readEvent(readJson(body, { isOpen: true }), mode)
      const outcome = await gate('stripe', () => receive(event, request.id, tools))
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
  { db, now, announce, log, metrics, stripe }: StripeTools,
): Promise<StripeEventOutcome> {
  const by = byStripe(requestId)
  const applied = await applyEvent(event, { db, now, announce, by, plans: stripe.plans })
  const { outcome, problems } = applied
  metrics.paymentEvents.inc({ outcome })
  log.event('payment_event', { id: event.id, type: event.type, outcome })
  for (const problem of problems) {
    log.problem('a payment event needs a look', new Error(problem), requestId)
  }
  return outcome
}
