import { isRecord } from './json.ts'

/** Where in an answer something happens; in an answer with fewer pieces, after the last one. */
export type After = { pieces: number }

/** The numbers are sent unchanged in the protocol's usage members, whatever a vendor includes in them. */
export type ScriptUsage = {
  input?: number
  output?: number
  cached?: number
  cacheWrite?: number
  reasoning?: number
}

export type ScriptError = {
  status?: number
  type?: string
  message?: string
  /** Messages has no member for it. */
  code?: string
  /** Sent unchanged in the header `retry-after`. */
  retryAfter?: number | string
}

/**
 * Instructions for the upstream, written as `#script {json}` on a line of the last user message, or in base64. A piece is one
 * streamed part of text, thinking, refusal or tool arguments. With `text` or `tokens`, the length limit and the stop
 * sequences of the request are ignored.
 */
export type Script = {
  text?: string
  /** Generates this many short words instead. */
  tokens?: number
  /** Words in one piece; 1 when absent. */
  pieceTokens?: number
  /** The delay between two pieces; a plain answer takes as long as its stream would. */
  paceMs?: number
  /** The delay between the headers and the first byte of the body. */
  firstMs?: number
  /** The delay before the headers. */
  headMs?: number
  thinking?: string
  /** A redacted thinking block; in responses the encrypted content of a reasoning item. */
  redacted?: string
  toolCalls?: { name: string; arguments: unknown }[]
  /** The number of pieces that the arguments of each call are cut into; 3 when absent. */
  argumentPieces?: number
  refusal?: string
  stop?: 'end' | 'max_tokens' | 'stop_sequence' | 'content_filter'
  stopSequence?: string
  usage?: ScriptUsage
  noUsage?: boolean
  /** Sent instead of an answer. */
  error?: ScriptError
  /** The protocol's error event in the middle of a stream; a plain answer fails with 500. */
  errorAfter?: After & { type?: string; message?: string }
  /** The socket is destroyed in the middle of a stream; a plain answer is cut at half its length. */
  closeAfter?: After
  stallAfter?: After & { ms: number }
  /** A frame that is not JSON; a plain answer is then half a document. */
  malformedAfter?: After
  /** Adds one more piece of text of this length. */
  hugeFrameBytes?: number
  /** Writes the body in parts of this many bytes. */
  splitBytes?: number
  /** Writes the whole stream at once. */
  coalesce?: boolean
  crlf?: boolean
  /** The stream ends without its last event: `[DONE]`, `message_stop`, `response.completed`. */
  noDone?: boolean
  noFinalBlankLine?: boolean
  /** Only the first n requests with the same key fail, with the script's fault or else with 503. */
  repeatTimes?: { n: number }
  key?: string
  /** The text of the answer is JSON that describes the received request. */
  echo?: boolean
}

type Check = (value: unknown) => boolean

const isText: Check = (value) => typeof value === 'string'
const isFlag: Check = (value) => typeof value === 'boolean'
const isNumber: Check = (value) => typeof value === 'number'
const isCount: Check = (value) => Number.isInteger(value) && (value as number) >= 0
const isPositive: Check = (value) => isCount(value) && value !== 0
const isStop: Check = (value) =>
  ['end', 'max_tokens', 'stop_sequence', 'content_filter'].includes(value as string)

type Shape = Record<string, Check>

const errorShape: Shape = {
  status: (value) => isCount(value) && Number(value) >= 400 && Number(value) <= 599,
  type: isText,
  message: isText,
  code: isText,
  retryAfter: (value) => isCount(value) || isText(value),
}
const usageShape: Shape = {
  input: isNumber,
  output: isNumber,
  cached: isNumber,
  cacheWrite: isNumber,
  reasoning: isNumber,
}

/** Checks that the required members are present, and that every member is in the shape. */
const object =
  (shape: Shape, required: readonly string[] = []): Check =>
  (value) =>
    isRecord(value) &&
    required.every((name) => name in value) &&
    Object.entries(value).every(([name, member]) => shape[name]?.(member) ?? false)

const isAfter = (further: Shape = {}, required: readonly string[] = []) =>
  object({ pieces: isCount, ...further }, ['pieces', ...required])
const toolCallShape: Shape = { name: isText, arguments: () => true }

const members = {
  text: isText,
  tokens: isCount,
  pieceTokens: isPositive,
  paceMs: isCount,
  firstMs: isCount,
  headMs: isCount,
  thinking: isText,
  redacted: isText,
  toolCalls: (value) =>
    Array.isArray(value) && value.every(object(toolCallShape, ['name', 'arguments'])),
  argumentPieces: isPositive,
  refusal: isText,
  stop: isStop,
  stopSequence: isText,
  usage: object(usageShape),
  noUsage: isFlag,
  error: object(errorShape),
  errorAfter: isAfter({ type: isText, message: isText }),
  closeAfter: isAfter(),
  stallAfter: isAfter({ ms: isCount }, ['ms']),
  malformedAfter: isAfter(),
  hugeFrameBytes: isPositive,
  splitBytes: isPositive,
  coalesce: isFlag,
  crlf: isFlag,
  noDone: isFlag,
  noFinalBlankLine: isFlag,
  repeatTimes: object({ n: isCount }, ['n']),
  key: isText,
  echo: isFlag,
} satisfies Record<keyof Script, Check>

/** An invalid script or control request; the message explains it to its author. */
export class BadScript extends Error {}

/** Checks the members one by one, so that a misspelt one is reported and not ignored. */
export function checkScript(value: unknown): Script {
  if (!isRecord(value)) throw new BadScript('The script is not a JSON object.')
  for (const [name, member] of Object.entries(value)) {
    const check = Object.hasOwn(members, name) ? members[name as keyof Script] : undefined
    if (!check) throw new BadScript(`The script has a member "${name}" that does not exist.`)
    if (!check(member)) throw new BadScript(`The script's member "${name}" has a wrong value.`)
  }
  if ('repeatTimes' in value && !('key' in value)) {
    throw new BadScript('The script needs a "key" to count its repetitions by.')
  }
  return value as Script
}

export function checkError(value: unknown): ScriptError {
  if (!object(errorShape, ['status'])(value)) {
    throw new BadScript(
      'The mode needs a "status" from 400 to 599 and may have an error\'s members.',
    )
  }
  return value as ScriptError
}

const scriptLine = /^[ \t]*#script[ \t]+(.*)$/m

const decodeBase64 = (text: string) => Buffer.from(text, 'base64').toString()

/** A line with a script in base64: who reads the request on its way finds nothing of it. */
export const hiddenScript = (script: Script) =>
  `#script ${Buffer.from(JSON.stringify(script)).toString('base64')}`

/** The script in a text, or an empty one if there is none. */
export function findScript(text: string): Script {
  if (!text.includes('#script')) return {}
  const json = scriptLine.exec(text)?.[1]
  if (json === undefined) return {}
  try {
    return checkScript(JSON.parse(json.startsWith('{') ? json : decodeBase64(json)))
  } catch (error) {
    if (error instanceof BadScript) throw error
    throw new BadScript('The script is not JSON.', { cause: error })
  }
}
