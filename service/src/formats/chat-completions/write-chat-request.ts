import type { Json } from '#formats/answer.ts'
import type { UpstreamModel } from '#formats/format.ts'
import type { OutputFormat, Tool, ToolChoice, Turn } from '#formats/turn.ts'

import { writeChatMessages } from './write-chat-messages.ts'

const stopSequencesMax = 4

/** A turn as a request for a chat completion. */
export function writeChatRequest(turn: Turn, upstream: UpstreamModel): Json {
  const system = turn.system.join('\n\n')
  return withoutAbsent({
    model: upstream.model,
    messages: [
      ...(system === '' ? [] : [{ role: 'system', content: system }]),
      ...writeChatMessages(turn.messages),
    ],
    stream: !upstream.isPlain,
    stream_options: upstream.isPlain ? null : { include_usage: true },
    [upstream.outputLimitMember]: Math.min(
      turn.maxOutputTokens ?? upstream.maxOutputTokens,
      upstream.maxOutputTokens,
    ),
    temperature: turn.temperature,
    top_p: turn.topP,
    presence_penalty: turn.presencePenalty,
    frequency_penalty: turn.frequencyPenalty,
    seed: turn.seed,
    stop: turn.stopSequences.length > 0 ? turn.stopSequences.slice(0, stopSequencesMax) : null,
    ...writeTools(turn),
    response_format: turn.outputFormat && writeOutputFormat(turn.outputFormat),
    reasoning_effort: turn.reasoning?.effort,
    user: turn.user,
  })
}

/** Upstreams refuse a choice among no tools. */
function writeTools({ tools, toolChoice, canCallToolsInParallel }: Turn): Json {
  if (tools.length === 0) return {}
  return {
    tools: tools.map(writeTool),
    tool_choice: toolChoice && writeToolChoice(toolChoice),
    parallel_tool_calls: canCallToolsInParallel,
  }
}

const writeTool = ({ name, description, parameters, isStrict }: Tool): Json => ({
  type: 'function',
  function: withoutAbsent({ name, description, parameters, strict: isStrict }),
})

const writeToolChoice = (choice: ToolChoice): string | Json =>
  choice.type === 'tool' ? { type: 'function', function: { name: choice.name } } : choice.type

function writeOutputFormat(format: OutputFormat): Json {
  if (format.type === 'json_object') return { type: 'json_object' }
  const { name, schema, isStrict } = format
  return { type: 'json_schema', json_schema: withoutAbsent({ name, schema, strict: isStrict }) }
}

/** The object without its null and undefined members. */
const withoutAbsent = (members: Json): Json =>
  Object.fromEntries(
    Object.entries(members).filter(([, value]) => value !== null && value !== undefined),
  )
