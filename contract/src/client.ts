import { z } from 'zod'

import type { Endpoint, InputOf } from './endpoint.ts'

export type ClientOptions = {
  baseUrl: string
  credential?: string
  timeoutMs?: number
  fetch?: typeof fetch
}

/** The service answered with an error; `code` is one of docs/errors.md. */
export class CallFailed extends Error {
  readonly status: number
  readonly code: string
  readonly param: string | null
  readonly requestId: string | null

  constructor(status: number, requestId: string | null, body: unknown) {
    const parsed = AdminError.safeParse(body)
    const error = parsed.success ? parsed.data.error : undefined
    super(error?.message ?? `The service answered ${status} without an explanation.`)
    this.name = 'CallFailed'
    this.status = status
    this.code = error?.code ?? 'unknown'
    this.param = error?.param ?? null
    this.requestId = requestId
  }
}

/** Only what the client reads; a newer service may send more. */
const AdminError = z.object({
  error: z.object({ code: z.string(), message: z.string(), param: z.string().nullish() }),
})

/** Calls endpoints of the contract, typed by their schemas. Answers may gain members (G9.1). */
export function createClient({ baseUrl, credential, timeoutMs = 30_000, ...rest }: ClientOptions) {
  const send = rest.fetch ?? fetch
  return {
    async call<E extends Endpoint>(
      endpoint: E,
      input: InputOf<E>,
      { idempotencyKey }: { idempotencyKey?: string } = {},
    ): Promise<z.output<E['response']>> {
      const { params, query, body } = input as Record<string, Record<string, unknown> | undefined>
      const response = await send(addressOf(baseUrl, endpoint.path, params, query), {
        method: endpoint.method,
        headers: {
          ...(credential && { authorization: `Bearer ${credential}` }),
          ...(body && { 'content-type': 'application/json' }),
          ...(idempotencyKey && { 'idempotency-key': idempotencyKey }),
        },
        ...(body && { body: JSON.stringify(body) }),
        redirect: 'error',
        signal: AbortSignal.timeout(timeoutMs),
      })
      const requestId = response.headers.get('x-request-id')
      if (!response.ok) {
        const body: unknown = await response.json().catch(() => undefined)
        throw new CallFailed(response.status, requestId, body)
      }
      // An answer that is cut off or not JSON is no answer: the outcome of the call is not known.
      return (await response.json()) as z.output<E['response']>
    },
  }
}

/** The address of a call. An id can never become another path. */
export function addressOf(
  baseUrl: string,
  path: string,
  params: Record<string, unknown> = {},
  query: Record<string, unknown> = {},
): string {
  const filled = path.replaceAll(/:(\w+)/g, (_, name: string) => segment(params[name]))
  const given = Object.entries(query).filter(([, value]) => value !== undefined)
  const search = new URLSearchParams(
    Object.fromEntries(given.map(([name, value]) => [name, String(value)])),
  ).toString()
  return `${baseUrl.replace(/\/+$/, '')}${filled}${search && `?${search}`}`
}

/** Dots alone would climb the path even when encoded, and an empty id would name the list. */
function segment(id: unknown): string {
  if (typeof id !== 'string' || /^\.{0,2}$/.test(id))
    throw new Error('An id is missing or made of dots.')
  return encodeURIComponent(id)
}
