import type { Ask } from './ask.ts'
import { valueForSchema } from './schema-value.ts'
import type { Script } from './script.ts'
import { countTokens, cutEvenly, generateWords, piecesOf, wordsOf } from './text-pieces.ts'

export const greeting = 'Hello from the scripted upstream.'
const thought = 'The caller wants a short answer, so I shall give one.'

export type Stop = 'end' | 'max_tokens' | 'stop_sequence' | 'content_filter'

export type AnswerUsage = {
  input: number
  output: number
  cached: number
  cacheWrite: number
  reasoning: number
}

/** The content of an answer, in pieces; a protocol only formats it. */
export type Answer = {
  /** Makes the ids of each answer unique. */
  number: string
  thinking?: readonly string[]
  isThinkingScripted: boolean
  redacted?: string
  text: readonly string[]
  refusal?: readonly string[]
  toolCalls: readonly { name: string; pieces: readonly string[] }[]
  stop: Stop
  stopSequence: string | null
  usage: AnswerUsage | null
}

/** Plans the answer; `echo` returns the text for a script with the member `echo`. */
export function planAnswer(ask: Ask, script: Script, number: string, echo: () => string): Answer {
  const toolCalls = planToolCalls(ask, script)
  const { text, stop, stopSequence } = planText(ask, script, echo, toolCalls.length > 0)
  const thinking = script.thinking ?? (ask.hasThinking ? thought : undefined)
  const { pieceTokens = 1, refusal, redacted, hugeFrameBytes } = script
  const pieces = piecesOf(text, pieceTokens)
  const answer = {
    number,
    ...(thinking !== undefined && { thinking: piecesOf(thinking, pieceTokens) }),
    isThinkingScripted: script.thinking !== undefined,
    ...(redacted !== undefined && { redacted }),
    text: hugeFrameBytes === undefined ? pieces : [...pieces, 'x'.repeat(hugeFrameBytes)],
    ...(refusal !== undefined && { refusal: piecesOf(refusal, pieceTokens) }),
    toolCalls,
    stop,
    stopSequence,
  }
  return { ...answer, usage: script.noUsage ? null : planUsage(ask, script, answer) }
}

function planToolCalls({ forcedTool, tools }: Ask, script: Script): Answer['toolCalls'] {
  const { argumentPieces = 3 } = script
  const cut = (value: unknown) =>
    cutEvenly(typeof value === 'string' ? value : JSON.stringify(value), argumentPieces)
  if (script.toolCalls) {
    return script.toolCalls.map((call) => ({ name: call.name, pieces: cut(call.arguments) }))
  }
  const tool = tools.find(({ name }) => name === forcedTool)
  return tool ? [{ name: tool.name, pieces: cut(valueForSchema(tool.schema)) }] : []
}

type PlannedText = Pick<Answer, 'stop' | 'stopSequence'> & { text: string }

function planText(ask: Ask, script: Script, echo: () => string, hasCalls: boolean): PlannedText {
  const scripted = script.tokens === undefined ? script.text : generateWords(script.tokens)
  const [requested = null] = ask.stopSequences
  const stop = script.stop ?? 'end'
  const stopSequence = stop === 'stop_sequence' ? (script.stopSequence ?? requested) : null
  if (scripted !== undefined) return { text: scripted, stop, stopSequence }
  if (script.echo) return { text: echo(), stop, stopSequence }
  if (hasCalls || script.refusal !== undefined) return { text: '', stop, stopSequence }
  const text = ask.schema === undefined ? greeting : JSON.stringify(valueForSchema(ask.schema))
  return script.stop === undefined ? cutToLimits(text, ask) : { text, stop, stopSequence }
}

/** Applies the stop sequences and the length limit of the request to the fixed answers. */
function cutToLimits(text: string, { stopSequences, maxTokens = Infinity }: Ask): PlannedText {
  const found = stopSequences
    .map((stopSequence) => ({ stopSequence, at: text.indexOf(stopSequence) }))
    .filter(({ at }) => at >= 0)
    .toSorted((left, right) => left.at - right.at)[0]
  const kept = found ? text.slice(0, found.at) : text
  const words = wordsOf(kept)
  if (words.length > maxTokens) {
    return { text: words.slice(0, maxTokens).join(''), stop: 'max_tokens', stopSequence: null }
  }
  if (!found) return { text, stop: 'end', stopSequence: null }
  return { text: kept, stop: 'stop_sequence', stopSequence: found.stopSequence }
}

function planUsage(ask: Ask, script: Script, answer: Omit<Answer, 'usage'>): AnswerUsage {
  const { usage = {} } = script
  const reasoning = usage.reasoning ?? countPieces(answer.thinking, script)
  const texts = countPieces(answer.text, script) + countPieces(answer.refusal, script)
  const calls = answer.toolCalls.reduce((sum, { pieces }) => sum + pieces.length, 0)
  return {
    input: usage.input ?? countTokens(ask.promptCharacters),
    output: usage.output ?? Math.max(1, reasoning + texts + calls),
    cached: usage.cached ?? 0,
    cacheWrite: usage.cacheWrite ?? 0,
    reasoning,
  }
}

function countPieces(pieces: readonly string[] = [], { pieceTokens = 1 }: Script): number {
  return pieceTokens === 1 ? pieces.length : wordsOf(pieces.join('')).length
}
