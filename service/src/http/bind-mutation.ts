import { createHash } from 'node:crypto'

import type { Endpoint, RequestOf, ResponseOf } from '@gatehouse/contract/endpoint'
import type { FastifyInstance, FastifyRequest } from 'fastify'

import { ApiError } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db, Tx } from '#platform/database.ts'
import type { Gate } from '#platform/gate.ts'
import type { SecretBox } from '#platform/secrets.ts'
import { inSavepoint, transact } from '#platform/transaction.ts'

import { answerText, type Call, callOf, readInput, route, sendJson } from './bind.ts'
import { errorText } from './error-dialect.ts'
import { claimKey, type IdempotencyClaim, storeAnswer } from './idempotency-store.ts'

export type MutationTools = {
  db: Db
  now: Clock
  secretBox: SecretBox
  docsUrl: string | undefined
  /** Keeps one organization from holding every database connection while its changes wait in line. */
  gate: Gate
}

type GuardedEndpoint = Endpoint & { permission: NonNullable<Endpoint['permission']> }

type Mutation<E extends GuardedEndpoint> = {
  /**
   * Refuses what this caller may not ask for, and does slow work that needs no transaction. Runs also
   * before a replay: a stored answer is shown only to somebody who could have made the request.
   */
  prepare?(input: RequestOf<E>, call: Call<E>): void | Promise<void>
  change(tx: Tx, input: RequestOf<E>, call: Call<E>): Promise<ResponseOf<E>>
  /** Adds to the answer what can only be known after the commit; a replay learns it anew. */
  complete?(
    answer: ResponseOf<E>,
    input: RequestOf<E>,
    call: Call<E>,
    signal: AbortSignal,
  ): Promise<ResponseOf<E>>
}

type Answer = { status: number; text: string; isReplay?: true; refusal?: ApiError }

/**
 * Serves an endpoint that changes something. The change runs in one transaction; with an
 * Idempotency-Key that transaction also claims the key and stores the answer, so that a crash leaves
 * either all of it or nothing, and a repetition can only ever see what really happened (card I).
 */
export function bindMutation<E extends GuardedEndpoint>(
  app: FastifyInstance,
  endpoint: E,
  tools: MutationTools,
  { prepare, change, complete }: Mutation<E>,
) {
  route(app, endpoint, async (request, reply, signal) => {
    const input = readInput(endpoint, request)
    const call = callOf(endpoint, request)
    const run = async (tx: Tx): Promise<Answer> => {
      signal.throwIfAborted()
      const text = answerText(endpoint, await change(tx, input, call))
      signal.throwIfAborted() // who has been told that it failed must not find it done
      return { status: endpoint.successStatus, text }
    }
    const key = readKey(request)
    await prepare?.(input, call)
    const claim = key && claimOf(request, key, tools.now())
    const answer = await tools.gate(request.principal?.organizationId ?? '', () =>
      claim ? runOnce(request, claim, tools, run) : transact(tools.db, run),
    )
    if (answer.isReplay) {
      void reply.header('idempotent-replayed', 'true')
      if (answer.status === 409) void reply.header('x-should-retry', 'false')
      request.line.replayed = true
    }
    if (!complete || answer.status !== endpoint.successStatus) {
      return sendJson(reply, answer.status, answer.text)
    }
    const made = JSON.parse(answer.text) as ResponseOf<E>
    const gone = new AbortController()
    reply.raw.once('close', () => gone.abort())
    const isOver = AbortSignal.any([signal, gone.signal])
    const whole = await complete(made, input, call, isOver)
    return sendJson(reply, answer.status, answerText(endpoint, whole))
  })
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

function claimOf(request: FastifyRequest, key: string, now: Date): IdempotencyClaim {
  const [path = '', query = ''] = request.url.split(/\?(.*)/s)
  return {
    organizationId: request.principal?.organizationId ?? '',
    scope: scopeOf(request.method, path),
    key,
    fingerprint: hash(query, request.bodyBytes ?? Buffer.alloc(0)),
    now,
  }
}

/** A key means something else on another path (card I). */
export const scopeOf = (method: string, path: string) => hash(method, path)

function hash(first: string, second: string | Buffer): Buffer {
  return createHash('sha256').update(first).update('\n').update(second).digest()
}

async function runOnce(
  request: FastifyRequest,
  claim: IdempotencyClaim,
  { db, secretBox, docsUrl }: MutationTools,
  run: (tx: Tx) => Promise<Answer>,
): Promise<Answer> {
  const { organizationId, scope, key } = claim
  const context = `idempotency_key/answer/${organizationId}/${scope.toString('hex')}/${key}`
  const answer = await transact(db, async (tx): Promise<Answer> => {
    const stored = await claimKey(tx, claim).catch(inProgress)
    if (stored) {
      if (!stored.fingerprint.equals(claim.fingerprint)) throw keyReused()
      const text = secretBox.open(stored.answer, context).toString()
      return { status: stored.status, text, isReplay: true }
    }
    // A business refusal undoes the change but keeps the claim: its repetition says the same.
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

/** Refusals that depend on what exists are part of the effect; all others may be tried again. */
function isRefusal(error: unknown): error is ApiError {
  return error instanceof ApiError && (error.status === 404 || error.status === 409)
}

/** The wait for another holder of the key ended without it finishing. */
function inProgress(error: unknown): never {
  if (error instanceof Error && 'code' in error && error.code === '55P03') {
    throw new ApiError(
      'idempotency_in_progress',
      'A request with this Idempotency-Key is still running.',
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
