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

/** The members that the client reads; a newer service may send more. */
const AdminError = z.object({
  error: z.object({ code: z.string(), message: z.string(), param: z.string().nullish() }),
})

/** A client whose calls are typed by the schemas of the endpoints. Unknown members in answers are accepted. */
export function createClient({ baseUrl, credential, timeoutMs = 30_000, ...rest }: ClientOptions) {
  const send = rest.fetch ?? fetch
  return {
    async call<E extends Endpoint>(
      endpoint: E,
      input: InputOf<E>,
      { idempotencyKey }: { idempotencyKey?: string } = {},
    ): Promise<z.output<E['response']>> {
      const { params, query, body } = input as Record<string, Record<string, unknown> | undefined>
      const response = await send(buildUrl(baseUrl, endpoint.path, params, query), {
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
      // Throws for an answer that is cut off or not JSON: the outcome of the call is unknown then.
      return (await response.json()) as z.output<E['response']>
    },
  }
}

/** The URL of a call. An id is encoded, so that it cannot change the path. */
export function buildUrl(
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

/** `.` and `..` would change the path even when encoded, and an empty id would name the list. */
function segment(id: unknown): string {
  if (typeof id !== 'string' || /^\.{0,2}$/.test(id))
    throw new Error("An id in the path is missing, or is '.' or '..'.")
  return encodeURIComponent(id)
}
