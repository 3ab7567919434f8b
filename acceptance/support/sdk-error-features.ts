import { callers, type FeatureId } from '@gatehouse/tools/compatibility'
import { expect } from 'vitest'

import type { Told } from './sdk-caller.ts'
import type { Cell } from './sdk-cell.ts'

const isAiSdk = ({ caller }: Cell) => caller.startsWith('ai_')
const kindFor = (cell: Cell, kind: string) => (isAiSdk(cell) ? 'APICallError' : kind)

/** What goes wrong, as the errors that each client has for it. */
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
  const told = await failureOf(cell, () => cell.open().say(cell.prompt({ error })))
  expect(told).toMatchObject({ kind: kindFor(cell, 'BadRequestError'), status: 400 })
  expectWords(cell, told, 'The soup is too hot.')
}

async function expectOverloaded(cell: Cell) {
  const error = { status: cell.format === 'messages' ? 529 : 503 }
  const told = await failureOf(cell, () => cell.open().say(cell.prompt({ error })))
  // Only Messages knows 529.
  const status = callers[cell.caller].format === 'messages' ? 529 : 503
  const kind = cell.caller === 'anthropic' ? 'OverloadedError' : 'InternalServerError'
  expect(told).toMatchObject({ kind: kindFor(cell, kind), status })
  expectWords(cell, told, 'overloaded')
}

async function expectUnknownModel(cell: Cell) {
  const connection = { ...cell.connection, model: 'no-such-model' }
  const told = await failureOf(cell, () => cell.client.open(connection).say('Hello'))
  expect(told).toMatchObject({ kind: kindFor(cell, 'BadRequestError'), status: 400 })
  expectWords(cell, told, "There is no model 'no-such-model'")
}

async function expectBadBody(cell: Cell) {
  const told = await failureOf(cell, () => cell.open().say(cell.prompt(), { topP: 7 }))
  expect(told).toMatchObject({ kind: kindFor(cell, 'BadRequestError'), status: 400 })
  expectWords(cell, told, 'top_p')
}

async function expectBadKey(cell: Cell) {
  const connection = { ...cell.connection, key: 'gate_prj_mistyped' }
  const told = await failureOf(cell, () => cell.client.open(connection).say('Hello'))
  expect(told).toMatchObject({ kind: kindFor(cell, 'AuthenticationError'), status: 401 })
}

async function expectFailureMidway(cell: Cell) {
  const script = {
    ...{ text: 'One two three four five six.', stallAfter: { pieces: 3, ms: 150 } },
    errorAfter: { pieces: 3, message: 'The oven is out.' },
  }
  const told = await failureOf(cell, () => cell.open().say(cell.prompt(script)))
  expectWords(cell, told, 'The oven is out.')
  expectMidway(cell, told)
}

async function expectBrokenConnection(cell: Cell) {
  const script = {
    ...{ text: 'One two three four five six.', stallAfter: { pieces: 3, ms: 150 } },
    closeAfter: { pieces: 3 },
  }
  const told = await failureOf(cell, () => cell.open().say(cell.prompt(script)))
  expectWords(cell, told, 'The connection to the model provider broke.')
  expectMidway(cell, told)
}

/** What went wrong, in words, where the client shows them. */
function expectWords({ note }: Cell, { message, body }: Told, words: string) {
  expect(note === 'words_in_body' ? body : message).toContain(words)
}

/** A plain answer fails as a whole; of a stream the status has gone out, so its error has none. */
function expectMidway(cell: Cell, { kind, status }: Told) {
  if (cell.mode === 'plain') {
    expect({ kind, status }).toEqual({ kind: kindFor(cell, 'InternalServerError'), status: 502 })
    return
  }
  expect({ kind, status }).toEqual({ kind: midwayKinds[cell.caller], status: undefined })
}

const midwayKinds = {
  anthropic: 'APIError',
  openai_responses: 'FailedResponse',
  openai_chat: 'APIError',
  ai_anthropic: 'StreamProviderError',
  ai_responses: 'StreamProviderError',
  ai_chat: 'StreamProviderError',
} as const

async function failureOf(cell: Cell, attempt: () => Promise<unknown>): Promise<Told> {
  const error = await attempt().then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error, 'it did not fail').toBeDefined()
  return cell.client.explain(error)
}
