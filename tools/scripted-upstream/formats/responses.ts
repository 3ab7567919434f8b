import type { Answer } from '../answer.ts'
import type { Ask } from '../ask.ts'
import { namedFrame, type Failure, type Frame } from '../frame.ts'
import { recordOf, type Json } from '../json.ts'
import { itemsOf } from './responses-items.ts'

/** The answer as one `response` object. */
export function plainResponse(ask: Ask, answer: Answer): Json {
  const output = itemsOf(ask, answer).map(({ full }) => full)
  return { ...responseHead(ask, answer), ...ending(answer), output, usage: usageOf(answer) }
}

/** The answer as the numbered events of a response stream. */
export function responseFrames(ask: Ask, answer: Answer): Frame[] {
  const frames: Frame[] = []
  const { include_obfuscation } = recordOf(ask.body['stream_options'])
  const push = (type: string, data: Json, kind: Frame['kind'] = 'frame') => {
    const padding = kind === 'piece' && include_obfuscation === true
    const numbered = { sequence_number: frames.length, ...data }
    frames.push(
      namedFrame(type, padding ? { ...numbered, obfuscation: 'aB3dE6g' } : numbered, kind),
    )
  }
  const response = responseHead(ask, answer)
  push('response.created', { response })
  push('response.in_progress', { response })
  const items = itemsOf(ask, answer)
  for (const [output_index, { empty, events, full }] of items.entries()) {
    push('response.output_item.added', { output_index, item: empty })
    for (const { type, data, isPiece } of events(output_index)) {
      push(type, data, isPiece ? 'piece' : 'frame')
    }
    push('response.output_item.done', { output_index, item: full })
  }
  const done = { ...response, ...ending(answer), usage: usageOf(answer) }
  const output = items.map(({ full }) => full)
  push(`response.${String(done.status)}`, { response: { ...done, output } }, 'end')
  return frames
}

/** The members that do not change during the answer; parameters of the request are echoed. */
function responseHead({ body, model }: Ask, { number }: Answer) {
  const given = (name: string, otherwise: unknown) => body[name] ?? otherwise
  const { effort = null, summary = null } = recordOf(body['reasoning'])
  const { format = { type: 'text' }, verbosity = 'medium' } = recordOf(body['text'])
  return {
    id: `resp_scripted${number}`,
    object: 'response',
    created_at: Math.floor(Date.now() / 1000),
    status: 'in_progress',
    background: false,
    error: null,
    incomplete_details: null as Json | null,
    instructions: given('instructions', null),
    max_output_tokens: given('max_output_tokens', null),
    model,
    output: [],
    parallel_tool_calls: given('parallel_tool_calls', true),
    previous_response_id: given('previous_response_id', null),
    prompt_cache_key: given('prompt_cache_key', null),
    reasoning: { effort, summary },
    service_tier: given('service_tier', 'default'),
    store: given('store', true),
    temperature: given('temperature', 1),
    text: { format, verbosity },
    tool_choice: given('tool_choice', 'auto'),
    tools: given('tools', []),
    top_p: given('top_p', 1),
    truncation: given('truncation', 'disabled'),
    usage: null as Json | null,
    user: given('user', null),
    metadata: given('metadata', {}),
  }
}

function ending({ stop }: Answer) {
  if (stop === 'max_tokens') {
    return { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } }
  }
  if (stop === 'content_filter') {
    return { status: 'incomplete', incomplete_details: { reason: 'content_filter' } }
  }
  return { status: 'completed', completed_at: Math.floor(Date.now() / 1000) }
}

function usageOf({ usage }: Answer): Json | null {
  if (!usage) return null
  const { input, output, cached, cacheWrite, reasoning } = usage
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cached, cache_write_tokens: cacheWrite },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: input + output,
  }
}

/** A failure of the type `response.failed` becomes that event, any other the event `error`. */
export function responseErrorFrame({ type, message }: Failure, sent: readonly Frame[]): Frame {
  const sequence_number = sent.length
  if (type !== 'response.failed') {
    const data = { sequence_number, code: type ?? 'server_error', message, param: null }
    return namedFrame('error', data)
  }
  const first = recordOf(JSON.parse(sent[0]?.text.split('data: ')[1] ?? '{}'))['response']
  const failed = { status: 'failed', error: { code: 'server_error', message } }
  const response = { ...recordOf(first), ...failed }
  return namedFrame('response.failed', { sequence_number, response })
}
