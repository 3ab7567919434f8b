import { Webhook } from 'standardwebhooks'

import {
  findRecordProblems,
  findRequestProblems,
  isMembers,
  type Members,
  parseJson,
} from './checks.ts'
import { type DestinationDouble, type DoubleRequest, startDouble } from './double.ts'

type WebhookOptions = { secret: string; port?: number; path?: string }

export type WebhookDouble = DestinationDouble & {
  /** The `webhook-id` of each request that was accepted. */
  readonly ids: string[]
  /** The body of each request that was accepted. */
  readonly bodies: string[]
}

/** A receiver of webhooks that checks signatures with the library of Standard Webhooks. */
export async function startWebhookDouble(options: WebhookOptions): Promise<WebhookDouble> {
  const { secret, port, path = '/' } = options
  const [received, problems]: [Members[], string[]] = [[], []]
  const [ids, bodies]: [string[], string[]] = [[], []]
  const verifier = new Webhook(secret)

  function take(body: unknown) {
    const { type, timestamp, data } = isMembers(body) ? body : {}
    const events = isMembers(data) ? data['events'] : undefined
    if (type !== 'audit.events') problems.push('the type is unknown')
    if (Number.isNaN(Date.parse(String(timestamp)))) problems.push('the timestamp is no time')
    if (!Array.isArray(events) || !events.every(isMembers) || events.length === 0) {
      problems.push('there are no events')
      return
    }
    problems.push(...events.flatMap(findRecordProblems))
    received.push(...events)
  }

  function answer(request: DoubleRequest) {
    if (request.url.pathname !== path) return { status: 404 }
    const { headers } = request
    const text = request.body.toString()
    try {
      verifier.verify(text, headers as Record<string, string>, { jsonParse: false })
    } catch (error) {
      return { status: 401, body: String(error) }
    }
    problems.push(...findRequestProblems(request, { path, encoding: undefined }))
    const id = String(headers['webhook-id'])
    if (id.includes('.')) problems.push('a dot in an id makes signatures ambiguous')
    take(parseJson(text))
    ids.push(id)
    bodies.push(text)
    return { status: 204 }
  }

  const double = await startDouble(answer, port)
  return { ...double, received, problems, ids, bodies }
}
