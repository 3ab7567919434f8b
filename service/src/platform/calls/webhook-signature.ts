import { createHmac } from 'node:crypto'

import { toSeconds } from '#platform/clock.ts'

type SignedMessage = {
  /** The same when the same message is sent again, so that a receiver knows what it has already. */
  readonly id: string
  readonly sentAt: Date
  readonly body: string
}

/** The headers by which the receiver of a webhook knows its sender, as Standard Webhooks says (https://www.standardwebhooks.com). */
export function signWebhook({ id, sentAt, body }: SignedMessage, secret: string) {
  const timestamp = toSeconds(sentAt)
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': `v1,${signature}`,
  }
}
