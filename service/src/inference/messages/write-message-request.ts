import type { Json } from '#inference/answer.ts'
import type { UpstreamModel } from '#inference/protocol.ts'
import type { Tool, Turn } from '#inference/turn.ts'

import { type WrittenMessage, writeMessages } from './write-message-parts.ts'
import { writeThinking } from './write-message-thinking.ts'

/** A turn as a request for a streamed answer. What the format cannot say is left out. */
export function writeMessageRequest(turn: Turn, upstream: UpstreamModel): Json {
  const maxTokens = Math.min(turn.maxOutputTokens ?? Infinity, upstream.maxOutputTokens)
  const messages = writeMessages(turn.messages)
  const thinking = writeThinking(turn, messages, maxTokens)
  const output = writeOutputConfig(turn)
  const stops = turn.stopSequences.filter((text) => text.trim() !== '')
  return {
    model: upstream.model,
    max_tokens: maxTokens,
    stream: true,
    ...writeConversation(turn.system, messages),
    ...writeTools(turn),
    ...writeSampling(turn, thinking !== null && thinking['type'] !== 'disabled'),
    ...(stops.length > 0 && { stop_sequences: stops }),
    ...(thinking && { thinking }),
    ...(output && { output_config: output }),
    ...(turn.user !== null && { metadata: { user_id: turn.user } }),
  }
}

/** There must be a message: where there are only instructions, they are it. */
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

/** A model that thinks takes neither temperature nor top_k, and newer ones not both of the first two. */
function writeSampling({ temperature, topP, topK }: Turn, isThinking: boolean): Json {
  const isWarm = temperature !== null && !isThinking
  return {
    ...(isWarm && { temperature: Math.min(temperature, 1) }),
    ...(topP !== null && !isWarm && !isThinking && { top_p: topP }),
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
