import type { OtlpLogsConfig } from '@gatehouse/contract/exports/sink-config'

import { addressWith } from '#exports/destinations/address.ts'
import { compress } from '#exports/destinations/compress.ts'
import type {
  DestinationAnswer,
  DestinationType,
  DeliveryOutcome,
} from '#exports/destinations/destination.ts'
import { membersOf, readJsonAnswer } from '#exports/destinations/json-answer.ts'
import { outcomeOfAnswer } from '#exports/destinations/outcome.ts'
import { withoutSinkSecrets } from '#exports/destinations/without-secrets.ts'

import { writeExportRequest } from './log-record.ts'

const path = '/v1/logs'

/** Whatever takes logs by OTLP over HTTP, in its JSON encoding: a collector, or a product that has one built in. */
export const otlpLogs: DestinationType<OtlpLogsConfig> = {
  limits: { itemsMax: 1000, bytesMax: 1_000_000 },
  addressOf: ({ endpoint }) => addressWith(endpoint, path),
  async send(config, batch, deps) {
    const request = writeExportRequest(config.service_name, batch, deps.now())
    const answer = await deps.request(addressWith(config.endpoint, path), {
      method: 'POST',
      headers: headersOf(config),
      body: await compress(request),
      ...(!config.verify_tls && { tls: { verify: false } }),
    })
    return outcomeOf(answer, secretsOf(config))
  },
}

/** In lower case and before ours, so that none can be there twice. */
const headersOf = ({ header_name, header_value }: OtlpLogsConfig) => ({
  ...(header_value !== undefined && { [header_name.toLowerCase()]: header_value }),
  'content-type': 'application/json',
  'content-encoding': 'gzip',
})

/** A destination may also repeat the words that it read in `Basic <base64>`. */
function secretsOf({ header_value = '' }: OtlpLogsConfig): string[] {
  const words = header_value.split(/\s+/).slice(1)
  const decoded = words.flatMap((word) =>
    Buffer.from(word, 'base64').toString().split(':').slice(-1),
  )
  return [header_value, ...words, ...decoded.filter((word) => word.length >= 4)]
}

function outcomeOf(answer: DestinationAnswer, secrets: readonly string[]): DeliveryOutcome {
  const said = membersOf(readJsonAnswer(answer.body))
  if (answer.status < 200 || answer.status > 299) {
    const message = said?.['message']
    const text = typeof message === 'string' ? message : answer.body.toString()
    return outcomeOfAnswer(answer, withoutSinkSecrets(text, secrets))
  }
  if (!said && answer.body.length > 0) {
    const error = `The destination answered ${answer.status}, but not as OTLP says.`
    return { kind: 'misconfigured', error }
  }
  return outcomeOfPartialSuccess(answer, membersOf(said?.['partialSuccess']), secrets)
}

/** Which of the records were rejected is not said. The count is an int64, which JSON may write as a text. */
function outcomeOfPartialSuccess(
  answer: DestinationAnswer,
  partial: Readonly<Record<string, unknown>> | undefined,
  secrets: readonly string[],
): DeliveryOutcome {
  const rejected = Number(partial?.['rejectedLogRecords'] ?? 0)
  if (rejected === 0) return { kind: 'delivered' }
  const message = partial?.['errorMessage']
  const reason = typeof message === 'string' ? message : ''
  const text = `${rejected} log records were rejected. ${reason}`
  const { error } = outcomeOfAnswer(answer, withoutSinkSecrets(text, secrets)) as { error: string }
  return { kind: 'refused', error }
}
