import type { ElasticConfig } from '@gatehouse/contract/exports/sink-config'

import { addPath } from '#exports/destinations/address.ts'
import { compress } from '#exports/destinations/compress.ts'
import type {
  DestinationAnswer,
  DestinationDeps,
  DestinationType,
  ExportItem,
  DeliveryOutcome,
} from '#exports/destinations/destination.ts'
import { oneLine } from '#exports/destinations/one-line.ts'
import { outcomeOfAnswer } from '#exports/destinations/outcome.ts'
import { withoutSinkSecrets } from '#exports/destinations/without-secrets.ts'
import { EgressFailed } from '#platform/egress.ts'

import { readBulkAnswer, readError } from './bulk-answer.ts'

/** Without a filter an answer repeats index, id and shards of each item: 1,000 items would be 200 KB. */
const statuses = 'errors,items.*.status,items.*.error.type'
const reasons = `${statuses},items.*.error.reason`

/** 1,000 refused items without their reasons are about 90 KB. */
const answerLimitBytes = 256 * 1024

const errorCharactersMax = 300

/**
 * The `_bulk` interface of Elasticsearch. Each event is created under its own id, so what arrives again is a
 * conflict and not a second document; data streams take nothing but this action.
 */
export const elastic: DestinationType<ElasticConfig> = {
  limits: { itemsMax: 1000, bytesMax: 1_000_000 },
  addressOf: ({ endpoint }) => endpoint,
  async send(config, batch, deps) {
    const body = await compress(writeBulk(config, batch))
    const answer = await post(config, body, deps)
    if (answer.status === 200) return readItems(config, batch, answer)
    return outcomeOfAnswer(answer, withoutSinkSecrets(readError(answer.body), secretsOf(config)))
  },
}

/** An index, or a data stream. */
const targetOf = ({ index, dataset = 'policy_gateway.audit', namespace }: ElasticConfig) =>
  index ?? `logs-${dataset}-${namespace}`

function writeBulk(config: ElasticConfig, batch: readonly ExportItem[]): string {
  const _index = targetOf(config)
  const lines = batch.map(({ record, json }) => {
    const action = JSON.stringify({ create: { _index, _id: record.event_id } })
    return `${action}\n{"@timestamp":${JSON.stringify(record.created_at)},${json.slice(1)}\n`
  })
  return lines.join('')
}

/**
 * Reasons may quote the documents and have no limit. Where they are too large the same batch is sent again and
 * answered without them; what the first call has created is a conflict in the second.
 */
async function post(config: ElasticConfig, body: Buffer, deps: DestinationDeps) {
  const call = {
    method: 'POST',
    headers: headersOf(config),
    body,
    answerLimitBytes,
    ...(config.ca_cert !== undefined && { tls: { ca: config.ca_cert } }),
  } as const
  try {
    return await deps.request(addressOf(config, reasons), call)
  } catch (error) {
    if (!(error instanceof EgressFailed && error.statusOfTooLarge !== undefined)) throw error
    return await deps.request(addressOf(config, statuses), call)
  }
}

function addressOf({ endpoint, pipeline }: ElasticConfig, filterPath: string): string {
  const url = addPath(endpoint, '/_bulk')
  url.searchParams.set('filter_path', filterPath)
  if (pipeline !== undefined) url.searchParams.set('pipeline', pipeline)
  return url.href
}

const basicOf = ({ username = '', password = '' }: ElasticConfig) =>
  Buffer.from(`${username}:${password}`).toString('base64')

function headersOf(config: ElasticConfig): Record<string, string> {
  const headers = {
    'content-type': 'application/x-ndjson',
    'content-encoding': 'gzip',
    accept: 'application/json',
  }
  if (config.api_key !== undefined) {
    return { ...headers, authorization: `ApiKey ${config.api_key}` }
  }
  if (config.username === undefined) return headers
  return { ...headers, authorization: `Basic ${basicOf(config)}` }
}

const secretsOf = (config: ElasticConfig) => [config.api_key, config.password, basicOf(config)]

function readItems(
  config: ElasticConfig,
  batch: readonly ExportItem[],
  answer: DestinationAnswer,
): DeliveryOutcome {
  const items = readBulkAnswer(answer.body, batch.length)
  if (!items) {
    const error = 'The destination did not answer as Elasticsearch does.'
    return { kind: 'misconfigured', error }
  }
  const secrets = secretsOf(config)
  const clean = (text: string) => oneLine(withoutSinkSecrets(text, secrets), errorCharactersMax)
  const wrong = items.find(({ isConfiguration }) => isConfiguration)
  if (wrong) return { kind: 'misconfigured', error: clean(wrong.error) }
  const results = items.map(({ kind, error }) =>
    kind === 'delivered' ? { kind } : { kind, error: clean(error) },
  )
  return { kind: 'itemised', items: results }
}
