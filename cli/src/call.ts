import { CallFailed, createClient } from '@gatehouse/contract/client'
import type { Endpoint } from '@gatehouse/contract/endpoint'

import type { Input } from './input.ts'
import type { Settings } from './settings.ts'

/** No answer came, or only a part of one. */
export class Unanswered extends Error {}

/** A change that may or may not have been made; with the same idempotency key it can be repeated. */
export class Unsettled extends Error {
  readonly idempotencyKey: string

  constructor(cause: unknown, idempotencyKey: string) {
    super('The outcome is not known.', { cause })
    this.idempotencyKey = idempotencyKey
  }
}

export type Wait = (ms: number) => Promise<void>
export type Call = { endpoint: Endpoint; input: Input; idempotencyKey?: string }

const attemptsMax = 3
const waitMs = 1000

/** Makes a call; repeats it when it failed on the way and a repetition cannot have a second effect. */
export async function callService(settings: Settings, call: Call, wait: Wait): Promise<unknown> {
  const { endpoint, idempotencyKey } = call
  const isRepeatable = endpoint.method === 'GET' || idempotencyKey !== undefined
  for (let attempt = 1; ; attempt++) {
    try {
      return await callOnce(settings, call)
    } catch (error) {
      if (!isRepeatable || !isTransient(error)) throw error
      if (attempt === attemptsMax)
        throw idempotencyKey ? new Unsettled(error, idempotencyKey) : error
    }
    await wait(waitMs)
  }
}

function isTransient(error: unknown): boolean {
  if (error instanceof Unanswered) return true
  if (!(error instanceof CallFailed)) return false
  return error.status === 503 || error.code === 'idempotency_in_progress'
}

async function callOnce({ baseUrl, credential }: Settings, call: Call): Promise<unknown> {
  const { endpoint, input, idempotencyKey } = call
  const client = createClient({ baseUrl, credential, fetch: fetchOrExplain(baseUrl) })
  try {
    return await client.call(endpoint, input, {
      ...(idempotencyKey !== undefined && { idempotencyKey }),
    })
  } catch (error) {
    if (error instanceof CallFailed || error instanceof Unanswered) throw error
    throw new Unanswered(`${baseUrl} did not answer with JSON.`, { cause: error })
  }
}

const fetchOrExplain =
  (baseUrl: string): typeof fetch =>
  async (address, options) => {
    try {
      return await fetch(address, options)
    } catch (error) {
      throw new Unanswered(`${baseUrl} could not be reached: ${reasonOf(error)}.`, { cause: error })
    }
  }

/** fetch fails with "fetch failed"; the reason is in its cause, which has only a code where two addresses failed. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { cause } = error
  if (!(cause instanceof Error)) return error.message
  return cause.message || ('code' in cause ? String(cause.code) : error.message)
}
