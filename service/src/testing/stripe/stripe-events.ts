import { createHmac } from 'node:crypto'

import { receiveStripeEvent } from '@gatehouse/contract/webhook'
import type { FastifyInstance } from 'fastify'
import { onTestFinished } from 'vitest'

import { assemble, type House } from '#assemble.ts'
import { createServer } from '#http/server.ts'
import { serveRoutes } from '#routes.ts'

export const stripeSecret = 'whsec_0123456789abcdef0123456789abcdef'

export const stripeEnvironment = {
  STRIPE_WEBHOOK_SECRETS: stripeSecret,
  STRIPE_PLANS: 'price_developer=developer,prod_growth=growth,price_scale=scale',
}

export type StripeEvent = {
  id: string
  object: 'event'
  api_version: string
  livemode: boolean
  pending_webhooks: number
  type: string
  created: number
  data: { object: object }
}

let made = 0
/** An event in the form of Stripe, with an id of its own. */
export const stripeEvent = (
  type: string,
  object: object,
  { created = 1_780_315_200, id = `evt_${++made}` } = {},
): StripeEvent => ({
  id,
  object: 'event',
  api_version: '2025-03-31.basil',
  livemode: true,
  pending_webhooks: 1,
  type,
  created,
  data: { object },
})

type Answered = {
  outcome?: string
  error?: { code: string; message: string; param: string | null }
}
type Sending = { at?: Date; secret?: string; header?: string | null }

/** Signs an event as Stripe does, and sends it to the webhook. */
export async function sendToWebhook(
  app: FastifyInstance,
  event: object | string,
  { at = new Date(), secret = stripeSecret, header }: Sending = {},
) {
  const payload = typeof event === 'string' ? event : JSON.stringify(event, null, 2)
  const seconds = Math.floor(at.getTime() / 1000)
  const signature = createHmac('sha256', secret).update(`${seconds}.${payload}`).digest('hex')
  const given = header === undefined ? `t=${seconds},v1=${signature},v0=${'0'.repeat(64)}` : header
  const response = await app.inject({
    method: 'POST',
    url: receiveStripeEvent.path,
    payload,
    headers: {
      'content-type': 'application/json; charset=utf-8',
      ...(given !== null && { 'stripe-signature': given }),
    },
  })
  const body = response.json<Answered>()
  return { status: response.statusCode, ...body, requestId: response.headers['x-request-id'] }
}

/** Starts another API on the same database, as a second process would. */
export async function addProcess({ config }: House) {
  const house = assemble(config)
  const app = createServer({ ...house, trustedProxies: [], connectionsMax: 100 })
  serveRoutes(app, house, () => [])
  await app.ready()
  onTestFinished(async () => {
    await app.close()
    await house.stop()
  })
  return app
}
