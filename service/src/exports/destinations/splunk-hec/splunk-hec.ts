import { createHash } from 'node:crypto'

import type { SplunkHecConfig } from '@gatehouse/contract/exports/sink-config'

import { addressWith } from '#exports/destinations/address.ts'
import { compress } from '#exports/destinations/compress.ts'
import type {
  DestinationAnswer,
  DestinationDeps,
  DestinationType,
  ExportItem,
  DeliveryOutcome,
} from '#exports/destinations/destination.ts'
import { membersOf, readJsonAnswer } from '#exports/destinations/json-answer.ts'
import { outcomeOfAnswer } from '#exports/destinations/outcome.ts'
import { withoutSinkSecrets } from '#exports/destinations/without-secrets.ts'
import { BoundedMap } from '#platform/bounded-map.ts'

import { awaitAck } from './ack.ts'
import { explainCode } from './codes.ts'

const eventPath = '/services/collector/event'

/** About 15 seconds in all: a sink is leased for 30. */
const usualPausesMs = [250, 500, 1000, 2000, 3000, 4000, 4000]

/** Splunk's HTTP Event Collector, also that of Splunk Cloud and of collectors that speak it. */
export function createSplunkHec(ackPausesMs = usualPausesMs): DestinationType<SplunkHecConfig> {
  /** Batches that were posted and not acknowledged yet. When one is due again, the indexer is asked before it is posted again. */
  const posted = new BoundedMap<string, { ackId: number; atMs: number }>(1000)

  async function untilAcknowledged(
    ackId: number,
    key: string,
    config: SplunkHecConfig,
    deps: DestinationDeps,
  ): Promise<DeliveryOutcome> {
    const ask = () => askForAck(config, ackId, deps)
    const explain = (answer: DestinationAnswer) => outcomeOfHecAnswer(config, answer)
    const outcome = await awaitAck({ ackId, pausesMs: ackPausesMs, ask, explain }, deps)
    if (outcome.kind !== 'failed') posted.delete(key)
    return outcome
  }

  return {
    limits: { itemsMax: 1000, bytesMax: 1_000_000 },
    addressOf: ({ endpoint }) => addressWith(endpoint, eventPath),
    async send(config, batch, deps) {
      const key = keyOf(config, batch)
      const known = posted.get(key)
      if (known && deps.now().getTime() - known.atMs < resendAfterMs) {
        return untilAcknowledged(known.ackId, key, config, deps)
      }
      const answer = await post(config, batch, deps)
      const refusal = outcomeOfHecAnswer(config, answer)
      if (refusal || !config.ack) return refusal ?? { kind: 'delivered' }
      const ackId = membersOf(readJsonAnswer(answer.body))?.['ackId']
      if (typeof ackId !== 'number') return noAcknowledgement
      posted.set(key, { ackId, atMs: deps.now().getTime() })
      return untilAcknowledged(ackId, key, config, deps)
    },
  }
}

export const splunkHec = createSplunkHec()

/** An indexer that has not acknowledged a batch after this time has probably lost it. */
const resendAfterMs = 5 * 60_000

function keyOf(config: SplunkHecConfig, batch: readonly ExportItem[]): string {
  const hash = createHash('sha256').update(channelOf(config))
  for (const { record } of batch) hash.update(record.event_id)
  return hash.digest('base64')
}

const noAcknowledgement: DeliveryOutcome = {
  kind: 'misconfigured',
  error: 'The token has no indexer acknowledgement: switch it on in Splunk, or `ack` off.',
}

async function post(config: SplunkHecConfig, batch: readonly ExportItem[], deps: DestinationDeps) {
  const body = await compress(batch.map((item) => writeEnvelope(config, item)).join(''))
  const headers = { ...headersOf(config), 'content-encoding': 'gzip' }
  const address = addressWith(config.endpoint, eventPath)
  return deps.request(address, { method: 'POST', headers, body, ...tlsOf(config) })
}

async function askForAck(config: SplunkHecConfig, ackId: number, deps: DestinationDeps) {
  const body = JSON.stringify({ acks: [ackId] })
  const call = { method: 'POST', headers: headersOf(config), body, ...tlsOf(config) } as const
  return deps.request(ackAddressOf(config), call)
}

const headersOf = (config: SplunkHecConfig) => ({
  authorization: `Splunk ${config.token}`,
  'content-type': 'application/json',
  ...(config.ack && { 'x-splunk-request-channel': channelOf(config) }),
})

const tlsOf = ({ verify_tls }: SplunkHecConfig) => (verify_tls ? {} : { tls: { verify: false } })

/** The collector takes JSON objects one after another, which is no JSON document. */
function writeEnvelope(config: SplunkHecConfig, { record, json }: ExportItem): string {
  const { host, source, sourcetype, index } = config
  const metadata = JSON.stringify({ host, source, sourcetype, index })
  // Digits: Splunk refuses the exponents that JSON allows.
  const time = (Date.parse(record.created_at) / 1000).toFixed(3)
  return `{"time":${time},${metadata.slice(1, -1)},"event":${json}}`
}

/** One channel for a configuration. Splunk keeps the acknowledgements of each apart, and wants a UUID. */
function channelOf({ endpoint, token }: SplunkHecConfig): string {
  const hash = createHash('sha256').update(`${endpoint}\n${token}`).digest()
  hash[6] = (hash.readUInt8(6) & 0x0f) | 0x80
  hash[8] = (hash.readUInt8(8) & 0x3f) | 0x80
  const hex = hash.toString('hex', 0, 16)
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/** Beside the path of events, also where a proxy puts the collector behind a path of its own. */
function ackAddressOf(config: SplunkHecConfig): string {
  const url = new URL(addressWith(config.endpoint, eventPath))
  const [before = ''] = url.pathname.split('/services/collector')
  const prefix = url.pathname.includes('/services/collector') ? before : ''
  url.pathname = `${prefix}/services/collector/ack`
  url.searchParams.set('channel', channelOf(config))
  return url.href
}

/** Undefined if it is a success. */
function outcomeOfHecAnswer(
  config: SplunkHecConfig,
  answer: DestinationAnswer,
): DeliveryOutcome | undefined {
  const said = membersOf(readJsonAnswer(answer.body))
  const code = said?.['code']
  const isAckAnswer = said?.['acks'] !== undefined && code === undefined
  if (answer.status === 200 && (code === 0 || isAckAnswer)) return undefined
  const text = said?.['text']
  const isHec = typeof text === 'string' && typeof code === 'number'
  const quoted = isHec ? `${text} (code ${code})` : answer.body.toString()
  const detail = withoutSinkSecrets(quoted, [config.token])
  if (answer.status === 200 && !isHec) {
    const error = 'The destination answered 200, but not as an HTTP Event Collector does.'
    return { kind: 'misconfigured', error }
  }
  return explainCode(code, detail) ?? outcomeOfAnswer(answer, detail)
}
