import type { Json, StopReason } from '#formats/answer.ts'
import type { Answering } from '#formats/format.ts'
import { asObject } from '#formats/json-values.ts'

/** The unique part of all ids of one answer: the last 24 characters of the request's id. */
const tailOf = ({ requestId }: Answering) => requestId.slice(-24)

export const itemId = (prefix: 'msg' | 'fc' | 'rs', answering: Answering, index: number) =>
  `${prefix}_${tailOf(answering)}${index}`

/** The response at its start, with the settings of the caller's request. */
export function newResponse(answering: Answering): Json {
  const { request, createdAt, model } = answering
  return {
    id: `resp_${tailOf(answering)}`,
    object: 'response',
    created_at: Math.floor(createdAt.getTime() / 1000),
    status: 'in_progress',
    background: false,
    error: null,
    incomplete_details: null,
    instructions: request['instructions'] ?? null,
    max_output_tokens: request['max_output_tokens'] ?? null,
    max_tool_calls: request['max_tool_calls'] ?? null,
    model,
    output: [],
    parallel_tool_calls: request['parallel_tool_calls'] ?? true,
    previous_response_id: null,
    prompt_cache_key: request['prompt_cache_key'] ?? null,
    reasoning: { effort: null, summary: null, ...asObject(request['reasoning']) },
    safety_identifier: request['safety_identifier'] ?? null,
    store: false,
    temperature: request['temperature'] ?? 1,
    text: writeTextSetting(asObject(request['text'])),
    tool_choice: request['tool_choice'] ?? 'auto',
    tools: request['tools'] ?? [],
    top_p: request['top_p'] ?? 1,
    truncation: 'disabled',
    usage: null,
    user: request['user'] ?? null,
    metadata: request['metadata'] ?? {},
  }
}

const writeTextSetting = (text: Json | undefined) => ({
  ...text,
  format: text?.['format'] ?? { type: 'text' },
})

const incompleteReasons: Partial<Record<StopReason, string>> = {
  max_tokens: 'max_output_tokens',
  content_filter: 'content_filter',
}

type Outcome = { status: string; incomplete_details: Json | null }

/**
 * The status of a finished response. A refusal with text is part of the output; one without text would look like
 * an empty answer, so it is reported as a content filter.
 */
export function toOutcome(reason: StopReason, hasRefusal: boolean): Outcome {
  const why = incompleteReasons[reason === 'refusal' && !hasRefusal ? 'content_filter' : reason]
  return why
    ? { status: 'incomplete', incomplete_details: { reason: why } }
    : { status: 'completed', incomplete_details: null }
}
