import { EgressBlocked } from '#platform/egress-target.ts'
import { EgressFailed } from '#platform/egress.ts'

import type { DestinationAnswer, DeliveryOutcome } from './destination.ts'
import { oneLine } from './one-line.ts'

const configurationStatuses = new Set([401, 403, 404, 405, 407, 410])
const refusals = new Set([400, 411, 413, 415, 422])

/** What an answer that is no success means. `detail` is what the destination says about it. */
export function outcomeOfAnswer(answer: DestinationAnswer, detail = ''): DeliveryOutcome {
  const { status } = answer
  const error = describe(`The destination answered ${status}`, detail)
  if (configurationStatuses.has(status)) return { kind: 'misconfigured', error }
  if (refusals.has(status)) return { kind: 'refused', error }
  if (status >= 300 && status < 400) {
    return { kind: 'misconfigured', error: `${error} Redirections are not followed.` }
  }
  const retryAfterMs = readRetryAfter(answer)
  return { kind: 'failed', error, ...(retryAfterMs !== undefined && { retryAfterMs }) }
}

/** What an error of `DestinationDeps.request` means. */
export function outcomeOfError(error: unknown): DeliveryOutcome {
  if (error instanceof EgressBlocked) return { kind: 'misconfigured', error: error.reason }
  if (error instanceof EgressFailed) {
    const status = error.statusOfTooLarge ?? 0
    if (status >= 300) return outcomeOfAnswer({ status, headers: {}, body: Buffer.alloc(0) })
    const kind = error.isCertificate ? 'misconfigured' : 'failed'
    return { kind, error: error.message }
  }
  return { kind: 'failed', error: 'The event could not be sent.' }
}

function describe(sentence: string, detail: string) {
  const line = oneLine(detail, 300)
  return line === '' ? `${sentence}.` : `${sentence}: ${line}`
}

/** Seconds, or a date by the destination's own clock, as RFC 9110 has it. */
function readRetryAfter({ headers }: DestinationAnswer): number | undefined {
  const text = headers['retry-after']
  if (typeof text !== 'string') return undefined
  if (/^\d{1,6}$/.test(text)) return Number(text) * 1000
  const waitMs = Date.parse(text) - Date.parse(String(headers['date']))
  return Number.isNaN(waitMs) ? undefined : Math.max(0, waitMs)
}
