import { createHash } from 'node:crypto'

import type { Endpoint, RequestOf, ResponseOf } from '@gatehouse/contract/endpoint'
import type { FastifyInstance, FastifyRequest } from 'fastify'

import { ApiError } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'
import { type Db, isLockTimeout, type Tx } from '#platform/database.ts'
import type { Gate } from '#platform/lines/gate.ts'
import type { SecretBox } from '#platform/secrets.ts'
import { inSavepoint, transact } from '#platform/transaction.ts'

import {
  answerText,
  type CallContext,
  readContext,
  readInput,
  route,
  sendAnswer,
  sendJson,
} from './bind.ts'
import { errorText } from './error-dialect.ts'
import {
  claimKey,
  type IdempotencyClaim,
  sealContextOf,
  storeAnswer,
} from './mutation/idempotency-store.ts'
import { readWriter, type ObjectWriter } from './mutation/writer.ts'

export type MutationDeps = {
  db: Db
  now: Clock
  secretBox: SecretBox
  docsUrl: string | undefined
  /** Limits how many connections one organization's changes can hold while they wait for its locks. */
  gate: Gate
}

type GuardedEndpoint = Endpoint & { permission: NonNullable<Endpoint['permission']> }

/** `writer` says whether the request may change an object that a set manages. */
type MutationContext<E extends GuardedEndpoint> = CallContext<E> & { readonly writer: ObjectWriter }

type Mutation<E extends GuardedEndpoint> = {
  /** Replaces the usual deadline, for a change that may take longer. */
  answerMaxMs?: number
  /**
   * Throws when the caller may not make this request, and does slow work that needs no transaction. Runs
   * before a replay too: a stored answer is sent only to a caller that could have made the request.
   */
  prepare?(input: RequestOf<E>, context: CallContext<E>): void | Promise<void>
  change(tx: Tx, input: RequestOf<E>, context: MutationContext<E>): Promise<ResponseOf<E>>
  /** Adds what is known only after the commit. It is not stored: a replay computes it again. */
  complete?(
    answer: ResponseOf<E>,
    input: RequestOf<E>,
    context: CallContext<E>,
    signal: AbortSignal,
  ): Promise<ResponseOf<E>>
}

type Answer = { status: number; text: string; isReplay?: true; refusal?: ApiError }

/**
 * Serves an endpoint that changes something. The change runs in one transaction. With an Idempotency-Key
 * the same transaction claims the key and stores the answer, so that a crash leaves all of it or nothing,
 * and a repeated request gets the answer of what really happened
 * (docs/specification/conventions.md#idempotency).
 */
export function bindMutation<E extends GuardedEndpoint>(
  app: FastifyInstance,
  endpoint: E,
  deps: MutationDeps,
  { prepare, change, complete, answerMaxMs }: Mutation<E>,
) {
  const answer: Parameters<typeof route>[2] = async (request, reply, signal) => {
    const input = readInput(endpoint, request)
    const context = readContext(endpoint, request)
    const writer = readWriter(endpoint, input)
    const run = async (tx: Tx): Promise<Answer> => {
      signal.throwIfAborted()
      const text = answerText(endpoint, await change(tx, input, { ...context, writer }))
      writer.requireAsked()
      signal.throwIfAborted() // the caller has got a 503 by now: rolls back, so that the 503 stays true
      return { status: endpoint.successStatus, text }
    }
    const key = readKey(request)
    await prepare?.(input, context)
    const claim = key && buildClaim(request, key, deps.now())
    const made = await deps.gate(request.principal?.organizationId ?? '', () =>
      claim ? runOnce(request, claim, deps, run) : transact(deps.db, run),
    )
    if (made.isReplay) {
      void reply.header('idempotent-replayed', 'true')
      if (made.status === 409) void reply.header('x-should-retry', 'false')
      request.line.replayed = true
    }
    if (made.status !== endpoint.successStatus) return sendJson(reply, made.status, made.text)
    if (!complete) return sendAnswer(endpoint, reply, made.text)
    const disconnected = new AbortController()
    reply.raw.once('close', () => disconnected.abort())
    const aborted = AbortSignal.any([signal, disconnected.signal])
    const stored = JSON.parse(made.text) as ResponseOf<E>
    const completed = await complete(stored, input, context, aborted)
    return sendAnswer(endpoint, reply, answerText(endpoint, completed))
  }
  route(app, endpoint, answer, answerMaxMs === undefined ? {} : { answerMaxMs })
}

/** Visible ASCII, 1 to 255 characters; a quoted structured-field string is unquoted. */
export function readKey(request: FastifyRequest): string | undefined {
  const header = request.headers['idempotency-key']
  if (header === undefined) return undefined
  const quoted = /^"(.*)"$/.exec(String(header))?.[1]
  const key = quoted?.replaceAll(/\\(["\\])/g, '$1') ?? String(header)
  if (/^[\x21-\x7e]{1,255}$/.test(key)) return key
  throw new ApiError(
    'invalid_parameter',
    "'header.Idempotency-Key' must be 1 to 255 visible ASCII characters.",
    { param: 'header.Idempotency-Key' },
  )
}

function buildClaim(request: FastifyRequest, key: string, now: Date): IdempotencyClaim {
  const [path = '', query = ''] = request.url.split(/\?(.*)/s)
  return {
    organizationId: request.principal?.organizationId ?? '',
    scope: hashScope(request.method, path, request.principal?.member?.id),
    key,
    fingerprint: fingerprintOf(request, query),
    now,
  }
}

/**
 * What makes two requests the same: their query and body, and the set for which they are made. Without a set it is the value that
 * earlier releases have stored.
 */
function fingerprintOf({ bodyBytes, headers }: FastifyRequest, query: string) {
  const body = bodyBytes ?? Buffer.alloc(0)
  const set = headers['x-gatehouse-set']
  return hash(query, set === undefined ? body : hash(String(set), body))
}

/**
 * The scope of an Idempotency-Key: the same key on another method or path is another key, and each person has keys of their
 * own. Credentials of servers share them. Otherwise the secret of one person's key would be the answer to another's request.
 */
export const hashScope = (method: string, path: string, memberId?: string) =>
  hash(memberId === undefined ? method : `${method} ${memberId}`, path)

function hash(first: string, second: string | Buffer): Buffer {
  return createHash('sha256').update(first).update('\n').update(second).digest()
}

async function runOnce(
  request: FastifyRequest,
  claim: IdempotencyClaim,
  { db, secretBox, docsUrl }: MutationDeps,
  run: (tx: Tx) => Promise<Answer>,
): Promise<Answer> {
  const context = sealContextOf(claim)
  const answer = await transact(db, async (tx): Promise<Answer> => {
    const stored = await claimKey(tx, claim).catch(inProgress)
    if (stored) {
      if (!stored.fingerprint.equals(claim.fingerprint)) throw keyReused()
      const text = secretBox.open(stored.answer, context).toString()
      return { status: stored.status, text, isReplay: true }
    }
    // A refusal rolls the change back but is stored like an answer: a repetition gets the same refusal.
    const answer = await inSavepoint<Answer>(
      tx,
      () => run(tx),
      (error) => {
        if (!isRefusal(error)) throw error
        const text = errorText(error, request.id, { dialect: 'admin', docsUrl })
        return { status: error.status, text, refusal: error }
      },
    )
    const sealed = secretBox.seal(Buffer.from(answer.text), context)
    await storeAnswer(tx, claim, { status: answer.status, answer: sealed })
    return answer
  })
  if (answer.refusal) throw answer.refusal
  return answer
}

/** Whether the error depends on what exists (404, 409) and is therefore stored; others may be tried again. */
function isRefusal(error: unknown): error is ApiError {
  return error instanceof ApiError && (error.status === 404 || error.status === 409)
}

/** The claim waits for another transaction with the same key; a lock timeout means that it is still running. */
function inProgress(error: unknown): never {
  if (isLockTimeout(error)) {
    throw new ApiError(
      'idempotency_in_progress',
      'A request with this Idempotency-Key is still running; retry with the same key in a second.',
      { cause: error },
    )
  }
  throw error
}

const keyReused = () =>
  new ApiError(
    'idempotency_key_reused',
    'This Idempotency-Key was used for a different request; use a new one.',
  )
