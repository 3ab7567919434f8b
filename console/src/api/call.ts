import type { Answer, Input, OperationName } from './operations.ts'
import { noAnswer, toProblem } from './problem.ts'

type Values = Readonly<Record<string, unknown>>
type Options = { idempotencyKey?: string; signal?: AbortSignal }

/** What a page of this gateway knows and no other site does; only in memory. */
let csrfToken: string | null = null
let tellSignedOut = () => {}

export const setCsrfToken = (token: string | null) => (csrfToken = token)
export const readCsrfToken = () => csrfToken

/** What to do when the gateway says that there is no session. */
export const onSignedOut = (listener: () => void) => (tellSignedOut = listener)

const timeoutMs = 30_000

/** Calls an operation of the contract with the session's cookie. Throws a `Problem`. */
export async function call<Name extends OperationName>(
  name: Name,
  input: Input<Name>,
  { idempotencyKey, signal }: Options = {},
): Promise<Answer<Name>> {
  const [method = '', path = ''] = name.split(' ')
  const { params, query, body } = input as Partial<Record<'params' | 'query' | 'body', Values>>
  const timeout = AbortSignal.timeout(timeoutMs)
  const response = await fetch(addressOf(path, params, query), {
    method,
    headers: {
      ...(method !== 'GET' && csrfToken !== null && { 'x-gatehouse-csrf': csrfToken }),
      ...(body && { 'content-type': 'application/json' }),
      ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
    },
    ...(body && { body: JSON.stringify(body) }),
    credentials: 'same-origin',
    redirect: 'error',
    signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error
    throw noAnswer()
  })
  const answer: unknown = await response.json().catch(() => undefined)
  if (response.ok && answer !== undefined) return answer as Answer<Name>
  if (response.status === 401) tellSignedOut()
  if (response.ok) throw noAnswer()
  throw toProblem(response.status, response.headers.get('x-request-id'), answer)
}

/** The address of a call. An id is encoded, so that it cannot change the path. */
export function addressOf(path: string, params: Values = {}, query: Values = {}): string {
  const filled = path.replaceAll(/:(\w+)/g, (_, name: string) => {
    const id = params[name]
    if (typeof id !== 'string' || /^\.{0,2}$/.test(id))
      throw new Error(`The path needs an id for ${name}.`)
    return encodeURIComponent(id)
  })
  const given = Object.entries(query).filter(([, value]) => value !== undefined)
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)]))
  return given.length > 0 ? `${filled}?${search.toString()}` : filled
}
