import type { Json, StopReason } from '#inference/answer.ts'
import type { Answering } from '#inference/protocol.ts'
import { asObject } from '#inference/untyped.ts'

/** What tells the ids of one answer from those of all others: 24 characters (G4.63). */
const tailOf = ({ requestId }: Answering) => requestId.slice(-24)

export const itemId = (prefix: 'msg' | 'fc' | 'rs', answering: Answering, index: number) =>
  `${prefix}_${tailOf(answering)}${index}`

/** The response as it stands when it begins; what the caller asked for is repeated (card D). */
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
    text: writeTextWish(asObject(request['text'])),
    tool_choice: request['tool_choice'] ?? 'auto',
    tools: request['tools'] ?? [],
    top_p: request['top_p'] ?? 1,
    truncation: 'disabled',
    usage: null,
    user: request['user'] ?? null,
    metadata: request['metadata'] ?? {},
  }
}

const writeTextWish = (text: Json | undefined) => ({
  ...text,
  format: text?.['format'] ?? { type: 'text' },
})

const whyIncomplete: Partial<Record<StopReason, string>> = {
  max_tokens: 'max_output_tokens',
  content_filter: 'content_filter',
}

type Outcome = { status: string; incomplete_details: Json | null }

/**
 * What becomes of a response when its answer is finished (G4.60). A refusal that was put into words stands
 * in the output; one without words would look like an empty answer, so it is told as a filter's.
 */
export function outcomeOf(reason: StopReason, hasRefusal: boolean): Outcome {
  const why = whyIncomplete[reason === 'refusal' && !hasRefusal ? 'content_filter' : reason]
  return why
    ? { status: 'incomplete', incomplete_details: { reason: why } }
    : { status: 'completed', incomplete_details: null }
}
