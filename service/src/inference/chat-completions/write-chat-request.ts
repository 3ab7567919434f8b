import type { Json } from '#inference/answer.ts'
import type { UpstreamModel } from '#inference/protocol.ts'
import type { OutputFormat, Tool, ToolChoice, Turn } from '#inference/turn.ts'

import { numberOf, objectOf, withoutAbsent } from './json-member.ts'
import { withOwnReasoning } from './own-reasoning.ts'
import { writeMessages } from './write-chat-messages.ts'

const stopSequencesMax = 4

/** A turn as a request for a streamed chat completion. */
export function writeChatRequest(turn: Turn, upstream: UpstreamModel): Json {
  const system = turn.system.join('\n\n')
  return withoutAbsent({
    model: upstream.model,
    messages: [
      ...(system === '' ? [] : [{ role: 'system', content: system }]),
      ...writeMessages(turn.messages),
    ],
    stream: true,
    stream_options: { include_usage: true },
    max_completion_tokens: Math.min(
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

/** The caller's own request: we say which model, how much, and that we want it streamed with usage. */
export function forwardChatRequest(request: Json, upstream: UpstreamModel): Json {
  const { flagged_categories: _ours, ...members } = request
  return {
    ...members,
    messages: withOwnReasoning(request['messages']),
    model: upstream.model,
    stream: true,
    stream_options: { ...objectOf(request['stream_options']), include_usage: true },
    ...boundOutput(request, upstream.maxOutputTokens),
  }
}

/** The bound stands under the name that the caller uses: some upstreams know only one of the two. */
function boundOutput(request: Json, most: number): Json {
  const names = ['max_completion_tokens', 'max_tokens'] as const
  const given = names.filter((name) => numberOf(request[name]) !== null)
  if (given.length === 0) return { max_completion_tokens: most }
  return Object.fromEntries(
    given.map((name) => [name, Math.min(numberOf(request[name]) ?? most, most)]),
  )
}
