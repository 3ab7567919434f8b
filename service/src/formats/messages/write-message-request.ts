import type { Json } from '#formats/answer.ts'
import type { UpstreamModel } from '#formats/format.ts'
import type { Tool, Turn } from '#formats/turn.ts'

import { type WrittenMessage, writeMessages } from './write-message-parts.ts'
import { writeThinking } from './write-message-thinking.ts'

/** Callers may send up to 2 in every format; upstreams of this one refuse more than 1. */
export const temperatureMax = 1

/** A turn as a request. Settings that this format does not have are left out. */
export function writeMessageRequest(turn: Turn, upstream: UpstreamModel): Json {
  const maxTokens = Math.min(turn.maxOutputTokens ?? Infinity, upstream.maxOutputTokens)
  const messages = writeMessages(turn.messages)
  const thinking = writeThinking(turn, messages, maxTokens)
  const output = writeOutputConfig(turn)
  const stops = turn.stopSequences.filter((text) => text.trim() !== '')
  return {
    model: upstream.model,
    max_tokens: maxTokens,
    stream: !upstream.isPlain,
    ...writeConversation(turn.system, messages),
    ...writeTools(turn),
    ...writeSampling(turn, thinking !== null && thinking['type'] !== 'disabled'),
    ...(stops.length > 0 && { stop_sequences: stops }),
    ...(thinking && { thinking }),
    ...(output && { output_config: output }),
    ...(turn.user !== null && { metadata: { user_id: turn.user } }),
  }
}

/** The format requires a message: where there are only instructions, they become one. */
function writeConversation(system: readonly string[], messages: readonly WrittenMessage[]): Json {
  const texts = system.filter((text) => text !== '').map((text) => ({ type: 'text', text }))
  if (messages.length === 0) return { messages: [{ role: 'user', content: texts }] }
  return { ...(texts.length > 0 && { system: texts }), messages }
}

function writeTools(turn: Turn): Json {
  if (turn.tools.length === 0) return {}
  const choice = writeToolChoice(turn)
  return { tools: turn.tools.map(writeTool), ...(choice && { tool_choice: choice }) }
}

const writeTool = ({ name, description, parameters, isStrict }: Tool): Json => ({
  name,
  ...(description !== null && { description }),
  input_schema: { type: 'object', ...parameters },
  ...(isStrict !== null && { strict: isStrict }),
})

function writeToolChoice({ toolChoice, canCallToolsInParallel: isParallel }: Turn): Json | null {
  if (toolChoice === null && isParallel === null) return null
  const choice = toolChoice ?? { type: 'auto' as const }
  if (choice.type === 'none') return choice
  return {
    ...(choice.type === 'required' ? { type: 'any' } : choice),
    ...(isParallel !== null && { disable_parallel_tool_use: !isParallel }),
  }
}

/** Thinking excludes all three, and newer models refuse temperature and top_p together. */
function writeSampling({ temperature, topP, topK }: Turn, isThinking: boolean): Json {
  const hasTemperature = temperature !== null && !isThinking
  return {
    ...(hasTemperature && { temperature: Math.min(temperature, temperatureMax) }),
    ...(topP !== null && !hasTemperature && !isThinking && { top_p: topP }),
    ...(topK !== null && !isThinking && { top_k: topK }),
  }
}

function writeOutputConfig({ reasoning, outputFormat }: Turn): Json | null {
  const effort = reasoning?.effort === 'minimal' ? 'low' : reasoning?.effort
  const hasEffort = effort !== undefined && effort !== null && effort !== 'none'
  const hasSchema = outputFormat?.type === 'json_schema'
  if (!hasEffort && !hasSchema) return null
  return {
    ...(hasEffort && { effort }),
    ...(hasSchema && { format: { type: 'json_schema', schema: outputFormat.schema } }),
  }
}
