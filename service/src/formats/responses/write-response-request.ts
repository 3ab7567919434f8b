import type { Json } from '#formats/answer.ts'
import type { UpstreamModel } from '#formats/format.ts'
import type { OutputFormat, Reasoning, Tool, ToolChoice, Turn } from '#formats/turn.ts'

import { isOwnReasoning, writeInput } from './write-input-items.ts'

/** A turn as a request for an answer that the upstream does not store. */
export function writeResponseRequest(
  turn: Turn,
  { model, maxOutputTokens, isPlain = false }: UpstreamModel,
): Json {
  return {
    model,
    stream: !isPlain,
    store: false,
    max_output_tokens: Math.min(turn.maxOutputTokens ?? maxOutputTokens, maxOutputTokens),
    ...(turn.system.length > 0 && { instructions: turn.system.join('\n\n') }),
    input: writeInput(turn.messages),
    ...(turn.tools.length > 0 && writeTools(turn)),
    ...(turn.temperature !== null && { temperature: turn.temperature }),
    ...(turn.topP !== null && { top_p: turn.topP }),
    ...(turn.reasoning && writeReasoningSetting(turn.reasoning)),
    ...(isEncryptedReasoningWanted(turn) && { include: ['reasoning.encrypted_content'] }),
    ...(turn.outputFormat && { text: { format: writeFormat(turn.outputFormat) } }),
    ...(turn.user !== null && { user: turn.user }),
  }
}

/** Models without reasoning refuse a request for encrypted reasoning. */
const isEncryptedReasoningWanted = ({ reasoning, messages }: Turn) =>
  reasoning !== null || messages.some(({ parts }) => parts.some(isOwnReasoning))

const writeTools = ({ tools, toolChoice, canCallToolsInParallel }: Turn): Json => ({
  tools: tools.map(writeTool),
  ...(toolChoice && { tool_choice: writeToolChoice(toolChoice) }),
  ...(canCallToolsInParallel !== null && { parallel_tool_calls: canCallToolsInParallel }),
})

/** Tools are strict by default in this format, and not in the others. */
const writeTool = ({ name, description, parameters, isStrict }: Tool): Json => ({
  type: 'function',
  name,
  ...(description !== null && { description }),
  parameters,
  strict: isStrict ?? false,
})

const writeToolChoice = (choice: ToolChoice) =>
  choice.type === 'tool' ? { type: 'function', name: choice.name } : choice.type

function writeReasoningSetting({ effort, isSummaryWanted }: Reasoning): Json {
  if (effort === null && !isSummaryWanted) return {}
  return {
    reasoning: { ...(effort !== null && { effort }), ...(isSummaryWanted && { summary: 'auto' }) },
  }
}

function writeFormat(format: OutputFormat): Json {
  if (format.type === 'json_object') return { type: 'json_object' }
  const { type, name, schema, isStrict } = format
  return { type, name, schema, ...(isStrict !== null && { strict: isStrict }) }
}
