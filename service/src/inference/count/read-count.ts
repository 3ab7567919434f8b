import type { CountTokens } from '@gatehouse/contract/count-tokens'

import { messageCallerFormat } from '#formats/messages/message-format.ts'
import type { Turn } from '#formats/turn.ts'
import { readOpenJson } from '#http/read-json.ts'
import type { CatalogueModel } from '#inference/upstreams/catalogue.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Cancellation } from '#platform/calls/cancellation.ts'
import { runInTurns } from '#platform/steps/steps.ts'

import { keepsAllThinking, readCountTokens } from './count-tokens.ts'
import { requireCountable } from './count-turn.ts'
import type { InputCounting } from './input-counting.ts'
import { withoutEarlierReasoning } from './last-turn.ts'

type Deps = {
  /** Throws 404 where there is none. */
  findModel(name: string): CatalogueModel
  counting: Pick<InputCounting, 'countSoon'>
}

type Sent = { bytes: Buffer | null; owner: string; cancellation: Cancellation }

/** What is to be counted. */
export type CountRequest = {
  body: CountTokens
  keepsAll: boolean
  model: CatalogueModel
  turn: Turn
  /** An estimate of the number of tokens. */
  expectedTokens: number
}

/** The request that was read from a body, or the error. The error is thrown only after the attempt has been counted. */
export type ParsedCount = { ok: true; request: CountRequest } | { ok: false; error: ApiError }

export async function readCount(deps: Deps, sent: Sent): Promise<ParsedCount> {
  try {
    return { ok: true, request: await read(deps, sent) }
  } catch (error) {
    if (error instanceof ApiError) return { ok: false, error }
    throw error
  }
}

async function read({ findModel, counting }: Deps, { bytes, ...caller }: Sent) {
  if (!bytes || bytes.length === 0) throw new ApiError('invalid_json', 'The body is empty.')
  const { owner, cancellation } = caller
  const asker = { owner, signal: cancellation.signal }
  const counted = await runInTurns(readInSteps(bytes, findModel), asker)
  const { tokens } = await counting.countSoon(counted.turn, counted.model, caller)
  return { ...counted, expectedTokens: tokens }
}

function* readInSteps(bytes: Buffer, findModel: Deps['findModel']) {
  const json = yield* readOpenJson(bytes)
  yield
  const body = readCountTokens(json)
  yield
  const keepsAll = keepsAllThinking(body)
  const model = findModel(body.model)
  const turn = messageCallerFormat.readTurn(body)
  yield
  // Text that is too long to be counted is refused before it is checked.
  requireCountable(keepsAll ? turn : withoutEarlierReasoning(turn), model)
  yield
  return { body, keepsAll, model, turn }
}
