import type { ServerResponse } from 'node:http'

import { planAnswer, type Answer, type AnswerUsage } from './answer.ts'
import { readAsk, type Ask, type Dialect } from './ask.ts'
import { deliverPlain, deliverStream } from './deliver.ts'
import { protocols } from './formats/protocols.ts'
import type { Failure } from './frame.ts'
import type { Json } from './json.ts'
import { whyMessagesRefused, whyRefused } from './refuse-request.ts'
import type { ResponseWriter } from './response-writer.ts'
import { BadScript, findScript, type Script, type ScriptError } from './script.ts'
import type { Received, State } from './state.ts'
import { planStream } from './stream-steps.ts'
import { countTokens } from './text-pieces.ts'

/** One request with everything that is needed to answer it. */
export type Call = {
  received: Received
  response: ServerResponse
  writer: ResponseWriter
  state: State
  number: string
  onAnswered?: OnAnswered | undefined
}

/** What was actually sent in answer to one model call. */
export type Answered = {
  /** The `key` of its script. */
  key: string | undefined
  usage: AnswerUsage | null
  /** The number of streamed pieces written to the socket. */
  pieces: number
  /** True if everything was written to the socket, including the last byte. */
  isWhole: boolean
}
export type OnAnswered = (answered: Answered) => void

/** Answers a model call. */
export async function answerModelCall(call: Call, dialect: Dialect, body: Json) {
  const ask = readAsk(dialect, body)
  const { script, failure } = decide(call, ask, whyRefused(ask))
  if (failure) return fail(call, dialect, failure, script)
  const protocol = protocols[dialect]
  const answer = planAnswer(ask, script, call.number, () => JSON.stringify(toEcho(call, body)))
  reportWhenClosed(call, script, answer)
  const way = { ...call, script }
  const head = { status: 200, headers: headersFor(call, dialect) }
  if (ask.isStream) {
    const steps = planStream(protocol.frames(ask, answer), script, protocol, midway(call, script))
    return deliverStream(way, head, steps)
  }
  if (script.errorAfter) {
    const { pieces: _, ...error } = script.errorAfter
    return fail(call, dialect, { status: 500, ...error }, script)
  }
  return deliverPlain(way, head, JSON.stringify(protocol.plain(ask, answer)), countPieces(answer))
}

function reportWhenClosed(call: Call, { key }: Script, { usage }: Answer) {
  const { response, writer, onAnswered } = call
  if (!onAnswered) return
  response.once('close', () => {
    const isWhole = response.writableFinished && !writer.isBroken
    onAnswered({ key, usage, pieces: writer.pieces, isWhole })
  })
}

function countPieces({ thinking = [], text, refusal = [], toolCalls }: Answer): number {
  const called = toolCalls.reduce((sum, { pieces }) => sum + pieces.length, 0)
  return thinking.length + text.length + refusal.length + called
}

/** Answers with the input tokens that the usage of an answer to the same body would report. */
export async function answerCount(call: Call, body: Json) {
  const ask = readAsk('messages', body)
  const refusal = ask.model === '' ? 'model: Field required.' : whyMessagesRefused(body)
  const { script, failure } = decide(call, ask, refusal)
  if (failure) return fail(call, 'messages', failure, script)
  const input_tokens = script.usage?.input ?? countTokens(ask.promptCharacters)
  const head = { status: 200, headers: headersFor(call, 'messages') }
  await deliverPlain({ ...call, script }, head, JSON.stringify({ input_tokens }))
}

type Decision = { script: Script; failure?: ScriptError }

/** Decides whether a request gets an answer as its script says, or a failure. */
function decide({ state }: Call, { lastText }: Ask, refusal?: string): Decision {
  const mode = state.mode()
  if (mode) return { script: {}, failure: mode }
  if (refusal !== undefined) return { script: {}, failure: { status: 400, message: refusal } }
  try {
    const script = findScript(lastText)
    const { error, errorAfter, closeAfter, stallAfter, malformedAfter, ...healthy } = script
    if (!state.isFailing(script)) return { script: healthy }
    const isHarmless = !errorAfter && !closeAfter && !stallAfter && !malformedAfter
    const failure = error ?? (script.repeatTimes && isHarmless ? { status: 503 } : undefined)
    return { script, ...(failure && { failure }) }
  } catch (cause) {
    if (!(cause instanceof BadScript)) throw cause
    return { script: {}, failure: { status: 400, message: cause.message } }
  }
}

/** Answers with an error of the protocol. */
export async function fail(call: Call, dialect: Dialect, error: ScriptError, script: Script) {
  const { status = 500, type, message, code, retryAfter } = error
  const body = protocols[dialect].errorBody({
    status,
    message: message ?? 'The scripted upstream fails on purpose.',
    ...(type !== undefined && { type }),
    ...(code !== undefined && { code }),
    requestId: requestId(call),
  })
  const headers = headersFor(call, dialect)
  if (retryAfter !== undefined) headers['retry-after'] = String(retryAfter)
  const { headMs = 0, firstMs } = script
  const waits = { headMs, ...(firstMs !== undefined && { firstMs }) }
  await deliverPlain({ ...call, script: waits }, { status, headers }, JSON.stringify(body))
}

function midway(call: Call, { errorAfter }: Script): Failure {
  const { type, message = 'The scripted upstream fails midway on purpose.' } = errorAfter ?? {}
  return { status: 500, message, ...(type !== undefined && { type }), requestId: requestId(call) }
}

const requestId = ({ number }: Call) => `req_scripted${number}`

function headersFor(call: Call, dialect: Dialect): Record<string, string> {
  const { headers, requestIdHeader } = protocols[dialect]
  return { ...headers, [requestIdHeader]: requestId(call) }
}

/** Hides the credential, because an echo reaches the caller of the gateway, who must not see it. */
function toEcho({ received }: Call, body: Json): Json {
  const { method, path, headers } = received
  const shown = { ...headers }
  for (const name of ['authorization', 'x-api-key']) if (shown[name]) shown[name] = '[hidden]'
  return { method, path, headers: shown, body }
}
