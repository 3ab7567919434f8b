import type { DatadogLogsConfig } from '@gatehouse/contract/exports/sink-config'

import { addressWith } from '#exports/destinations/address.ts'
import { compress } from '#exports/destinations/compress.ts'
import type { DestinationType, DeliveryOutcome } from '#exports/destinations/destination.ts'
import { outcomeOfAnswer } from '#exports/destinations/outcome.ts'
import { withoutSinkSecrets } from '#exports/destinations/without-secrets.ts'

import { writeLog } from './log.ts'

const path = '/api/v2/logs'
const logMaxBytes = 1_000_000
const requestMaxBytes = 5_000_000

/** The logs API of Datadog. */
export const datadogLogs: DestinationType<DatadogLogsConfig> = {
  limits: { itemsMax: 1000, bytesMax: 1_000_000 },
  addressOf,
  async send(config, batch, deps) {
    const logs = batch.map(({ record }) => writeLog(config, record, deps.now()))
    const tooLarge = refuseTooLarge(logs)
    if (tooLarge) return tooLarge
    const answer = await deps.request(addressOf(config), {
      method: 'POST',
      headers: {
        'dd-api-key': config.api_key,
        'content-type': 'application/json',
        'content-encoding': 'gzip',
      },
      body: await compress(`[${logs.join(',')}]`),
    })
    if (answer.status === 202) return { kind: 'delivered' }
    return outcomeOfAnswer(answer, withoutSinkSecrets(answer.body.toString(), [config.api_key]))
  },
}

function addressOf({ endpoint, site }: DatadogLogsConfig): string {
  return addressWith(endpoint ?? `https://http-intake.logs.${site}`, path)
}

/** Datadog would accept a log that is too large and cut it: half an event is no evidence. */
function refuseTooLarge(logs: readonly string[]): DeliveryOutcome | undefined {
  const sizes = logs.map((log) => Buffer.byteLength(log))
  if (sizes.some((size) => size > logMaxBytes)) {
    return {
      kind: 'refused',
      error: 'The event is larger than the 1 MB that Datadog stores of a log.',
    }
  }
  const total = sizes.reduce((sum, size) => sum + size + 1, 1)
  if (total <= requestMaxBytes) return undefined
  return { kind: 'refused', error: 'The batch is larger than the 5 MB that Datadog accepts.' }
}
