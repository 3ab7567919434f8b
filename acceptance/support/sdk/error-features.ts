import { callers, type FeatureId } from '@gatehouse/tools/compatibility'
import { expect } from 'vitest'

import type { ReportedError } from './caller.ts'
import type { Cell } from './cell.ts'

const isAiSdk = ({ caller }: Cell) => caller.startsWith('ai_')
const kindFor = (cell: Cell, kind: string) => (isAiSdk(cell) ? 'APICallError' : kind)

/** Failures, and the error that each client throws for them. */
export const errorFeatures = {
  rejected: expectRejected,
  overloaded: expectOverloaded,
  unknown_model: expectUnknownModel,
  bad_body: expectBadBody,
  bad_key: expectBadKey,
  failure_midway: expectFailureMidway,
  broken_connection: expectBrokenConnection,
} satisfies Partial<Record<FeatureId, (cell: Cell) => Promise<void>>>

async function expectRejected(cell: Cell) {
  const error = { status: 400, message: 'The soup is too hot.' }
  const reported = await captureError(cell, () => cell.open().sendMessage(cell.prompt({ error })))
  expect(reported).toMatchObject({ kind: kindFor(cell, 'BadRequestError'), status: 400 })
  expectMessage(reported, 'The soup is too hot.')
}

async function expectOverloaded(cell: Cell) {
  const error = { status: cell.format === 'messages' ? 529 : 503 }
  const reported = await captureError(cell, () => cell.open().sendMessage(cell.prompt({ error })))
  // Only Messages has the status 529.
  const status = callers[cell.caller].format === 'messages' ? 529 : 503
  const kind = cell.caller === 'anthropic' ? 'OverloadedError' : 'InternalServerError'
  expect(reported).toMatchObject({ kind: kindFor(cell, kind), status })
  expectMessage(reported, 'overloaded')
}

async function expectUnknownModel(cell: Cell) {
  const connection = { ...cell.connection, model: 'no-such-model' }
  const reported = await captureError(cell, () => cell.client.open(connection).sendMessage('Hello'))
  expect(reported).toMatchObject({ kind: kindFor(cell, 'NotFoundError'), status: 404 })
  expectMessage(reported, "There is no model 'no-such-model'")
}

async function expectBadBody(cell: Cell) {
  const reported = await captureError(cell, () =>
    cell.open().sendMessage(cell.prompt(), { topP: 7 }),
  )
  expect(reported).toMatchObject({ kind: kindFor(cell, 'BadRequestError'), status: 400 })
  expectMessage(reported, 'top_p')
}

async function expectBadKey(cell: Cell) {
  const connection = { ...cell.connection, key: 'gate_prj_mistyped' }
  const reported = await captureError(cell, () => cell.client.open(connection).sendMessage('Hello'))
  expect(reported).toMatchObject({ kind: kindFor(cell, 'AuthenticationError'), status: 401 })
}

async function expectFailureMidway(cell: Cell) {
  const script = {
    text: 'One two three four five six.',
    stallAfter: { pieces: 3, ms: 150 },
    errorAfter: { pieces: 3, message: 'The oven is out.' },
  }
  // More than a plain answer may have: the upstream is asked for a stream, which can fail after its start.
  const reported = await captureError(cell, () =>
    cell.open().sendMessage(cell.prompt(script), { maxTokens: 9000 }),
  )
  expectMessage(reported, 'The oven is out.')
  expectMidway(cell, reported)
}

async function expectBrokenConnection(cell: Cell) {
  const script = {
    text: 'One two three four five six.',
    stallAfter: { pieces: 3, ms: 150 },
    closeAfter: { pieces: 3 },
  }
  const reported = await captureError(cell, () => cell.open().sendMessage(cell.prompt(script)))
  expectMessage(reported, 'The connection to the model provider broke.')
  expectMidway(cell, reported)
}

const expectMessage = ({ message }: ReportedError, text: string) => expect(message).toContain(text)

/** A plain answer fails with 502; the status of a stream has already been sent, so its error has none. */
function expectMidway(cell: Cell, { kind, status }: ReportedError) {
  if (cell.mode === 'plain') {
    expect({ kind, status }).toEqual({ kind: kindFor(cell, 'InternalServerError'), status: 502 })
    return
  }
  expect({ kind, status }).toEqual({ kind: midwayKinds[cell.caller], status: undefined })
}

const midwayKinds = {
  anthropic: 'APIError',
  openai_responses: 'APIError',
  openai_chat: 'APIError',
  ai_anthropic: 'StreamProviderError',
  ai_responses: 'StreamProviderError',
  ai_chat: 'StreamProviderError',
} as const

async function captureError(cell: Cell, attempt: () => Promise<unknown>): Promise<ReportedError> {
  const error = await attempt().then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error, 'the call did not fail').toBeDefined()
  return cell.client.describeError(error)
}
