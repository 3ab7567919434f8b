import type { AzureMonitorConfig } from '@gatehouse/contract/exports/sink-config'
import { z } from 'zod'

import { addPath } from '#exports/destinations/address.ts'
import { compress } from '#exports/destinations/compress.ts'
import type {
  DestinationAnswer,
  DestinationDeps,
  DestinationType,
  ExportItem,
  ItemResult,
  DeliveryOutcome,
} from '#exports/destinations/destination.ts'
import { readJsonAnswer } from '#exports/destinations/json-answer.ts'
import { outcomeOfAnswer } from '#exports/destinations/outcome.ts'
import { withoutSinkSecrets } from '#exports/destinations/without-secrets.ts'

import { createTokens } from './access-token.ts'

type AzureOptions = {
  /** Where tokens come from; sovereign clouds have a login of their own. */
  loginUrl?: string
}

/** Azure cuts longer values without telling anybody. */
const fieldBytesMax = 64 * 1024

/**
 * The Logs Ingestion API of Azure Monitor. A record is a row: each member goes to the column of its name, lists and
 * objects to columns of the type dynamic, and `TimeGenerated` is the time of the event.
 */
export function createAzureMonitor({
  loginUrl = 'https://login.microsoftonline.com',
}: AzureOptions = {}): DestinationType<AzureMonitorConfig> {
  const tokens = createTokens(loginUrl)

  async function post(config: AzureMonitorConfig, body: Buffer, deps: DestinationDeps) {
    const got = await tokens.get(config, deps)
    if ('outcome' in got) return got
    const headers = {
      authorization: `Bearer ${got.token}`,
      'content-type': 'application/json',
      'content-encoding': 'gzip',
    }
    const answer = await deps.request(addressOf(config), { method: 'POST', headers, body })
    return { answer, token: got.token }
  }

  async function sendRows(config: AzureMonitorConfig, rows: string, deps: DestinationDeps) {
    const body = await compress(rows)
    let posted = await post(config, body, deps)
    if ('answer' in posted && posted.answer.status === 401) {
      // The token may have been revoked since it was kept.
      tokens.forget(config)
      posted = await post(config, body, deps)
      if ('answer' in posted && posted.answer.status === 401) tokens.forget(config)
    }
    if ('outcome' in posted) return posted.outcome
    return readAnswer(posted.answer, [config.client_secret, posted.token])
  }

  return {
    limits: { itemsMax: 1000, bytesMax: 900_000 },
    addressOf: ({ endpoint }) => endpoint,
    async send(config, batch, deps) {
      const results = batch.map(checkFields)
      const rows = batch.filter((_, index) => results[index]?.kind === 'delivered').map(writeRow)
      if (rows.length === 0) return { kind: 'itemised', items: results }
      const outcome = await sendRows(config, `[${rows.join(',')}]`, deps)
      const isWhole = rows.length === batch.length || outcome.kind !== 'delivered'
      return isWhole ? outcome : { kind: 'itemised', items: results }
    },
  }
}

function addressOf({ endpoint, dcr_immutable_id, stream_name }: AzureMonitorConfig): string {
  const url = addPath(endpoint, `/dataCollectionRules/${dcr_immutable_id}/streams/${stream_name}`)
  url.searchParams.set('api-version', '2023-01-01')
  return url.href
}

const writeRow = ({ record, json }: ExportItem) =>
  `{"TimeGenerated":${JSON.stringify(record.created_at)},${json.slice(1)}`

/** What becomes of an item if Azure takes the others: evidence that would be cut is not sent. */
function checkFields({ record, json }: ExportItem): ItemResult {
  if (Buffer.byteLength(json) <= fieldBytesMax) return { kind: 'delivered' }
  const long = Object.entries(record).find(([, value]) => sizeOf(value) > fieldBytesMax)
  if (!long) return { kind: 'delivered' }
  const error = `The member ${long[0]} is longer than 64 KB, and Azure Monitor would cut it.`
  return { kind: 'refused', error }
}

const sizeOf = (value: unknown) =>
  Buffer.byteLength(typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))

const AzureError = z.object({ error: z.object({ code: z.string(), message: z.string() }) })

function readAnswer(answer: DestinationAnswer, secrets: readonly string[]): DeliveryOutcome {
  if (answer.status === 204) return { kind: 'delivered' }
  if (answer.status === 200) {
    const error = 'The destination did not answer as the Logs Ingestion API does.'
    return { kind: 'misconfigured', error }
  }
  const parsed = AzureError.safeParse(readJsonAnswer(answer.body))
  const { code = '', message = '' } = parsed.success ? parsed.data.error : {}
  const outcome = outcomeOfAnswer(answer, withoutSinkSecrets(`${code} ${message}`, secrets))
  // The stream is in the configuration: no batch is small enough for one that does not exist.
  const isStream = outcome.kind === 'refused' && code === 'InvalidStream'
  return isStream ? { kind: 'misconfigured', error: outcome.error } : outcome
}
