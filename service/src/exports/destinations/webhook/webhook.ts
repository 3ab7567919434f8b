import { createHash } from 'node:crypto'

import type { WebhookConfig } from '@gatehouse/contract/exports/sink-config'

import type {
  DestinationAnswer,
  DestinationCall,
  DestinationType,
  ExportItem,
} from '#exports/destinations/destination.ts'
import { outcomeOfAnswer } from '#exports/destinations/outcome.ts'
import { withoutSinkSecrets } from '#exports/destinations/without-secrets.ts'
import { signWebhook } from '#platform/calls/webhook-signature.ts'
import { EgressFailed } from '#platform/egress.ts'

/** Any server that takes webhooks, signed as Standard Webhooks says (https://www.standardwebhooks.com). */
export const webhook: DestinationType<WebhookConfig> = {
  limits: { itemsMax: 1000, bytesMax: 1_000_000 },
  addressOf: ({ endpoint }) => endpoint,
  async send(config, batch, deps) {
    const id = idOf(batch)
    const body = writeBody(batch)
    const call: DestinationCall = {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...signWebhook({ id, sentAt: deps.now(), body }, config.secret),
      },
      body,
      ...(!config.verify_tls && { tls: { verify: false } }),
    }
    const answer = await deps.request(config.endpoint, call).catch(ofAnySize)
    if (answer.status >= 200 && answer.status < 300) return { kind: 'delivered' }
    return outcomeOfAnswer(answer, withoutSinkSecrets(answer.body.toString(), [config.secret]))
  },
}

/** A receiver may say as much as it likes: only its status matters. */
function ofAnySize(error: unknown): DestinationAnswer {
  const status = error instanceof EgressFailed ? error.statusOfTooLarge : undefined
  if (status === undefined) throw error
  return { status, headers: {}, body: Buffer.alloc(0) }
}

/** The same when the same events are sent again, so that a receiver knows what it has already. */
function idOf(batch: readonly ExportItem[]): string {
  const hash = createHash('sha256')
  for (const { record } of batch) hash.update(`${record.event_id}\n`)
  return `msg_${hash.digest('base64url')}`
}

/** Nothing in it depends on when it is sent: a retry has the same body. */
function writeBody(batch: readonly ExportItem[]): string {
  const timestamp = batch.at(-1)?.record.created_at
  const events = batch.map(({ json }) => json).join(',')
  return `{"type":"audit.events","timestamp":${JSON.stringify(timestamp)},"data":{"events":[${events}]}}`
}
