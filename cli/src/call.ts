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

/**
 * Makes a call; the client repeats it when that cannot have a second effect. Every change has a key, so one that may
 * have been made in spite of its error can be repeated by hand, too.
 */
export async function callService(settings: Settings, call: Call, wait: Wait): Promise<unknown> {
  const { endpoint, input, idempotencyKey } = call
  const client = createClient({ ...settings, wait })
  try {
    return await client.call(endpoint, input, {
      ...(idempotencyKey !== undefined && { idempotencyKey }),
    })
  } catch (error) {
    const failure = explain(error, settings)
    throw idempotencyKey !== undefined && isUnknown(failure)
      ? new Unsettled(failure, idempotencyKey)
      : failure
  }
}

/** Whether the change may have been made, by this attempt or by an earlier one. */
function isUnknown(failure: unknown): boolean {
  if (failure instanceof Unanswered) return true
  if (!(failure instanceof CallFailed)) return false
  const { status, code, hadUnknownOutcome } = failure
  return status === 503 || code === 'idempotency_in_progress' || hadUnknownOutcome
}

function explain(error: unknown, { baseUrl }: Settings): unknown {
  if (error instanceof SyntaxError || isCutOff(error)) {
    return new Unanswered(`${baseUrl} did not answer with JSON.`, { cause: error })
  }
  const isOfFetch = error instanceof TypeError || error instanceof DOMException
  return isOfFetch
    ? new Unanswered(`${baseUrl} could not be reached: ${reasonOf(error)}.`, { cause: error })
    : error
}

const isCutOff = (error: unknown) => error instanceof TypeError && error.message === 'terminated'

/** fetch fails with "fetch failed"; the reason is in its cause, which has only a code where two addresses failed. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { cause } = error
  if (!(cause instanceof Error)) return error.message
  return cause.message || ('code' in cause ? String(cause.code) : error.message)
}
