import type { Answer, Stop } from '../answer.ts'
import type { Ask } from '../ask.ts'
import { namedFrame, type Failure, type Frame } from '../frame.ts'
import { recordOf, type Json } from '../json.ts'

const stopReasons = {
  end: 'end_turn',
  max_tokens: 'max_tokens',
  stop_sequence: 'stop_sequence',
  content_filter: 'refusal',
} as const satisfies Record<Stop, string>

const errorTypes: Record<number, string> = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  409: 'conflict_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  529: 'overloaded_error',
}

type Delta = Json & { type: string }
/** One content block: its empty form, the deltas that fill it, and its full form. */
type Block = { empty: Json; opening?: Delta; deltas: Delta[]; closing?: Delta; full: Json }

/** The answer as one `message` object. */
export function plainMessage(ask: Ask, answer: Answer): Json {
  const content = blocksOf(ask, answer).map(({ full }) => full)
  return { ...messageHead(ask, answer), content, ...ending(answer), ...usageMember(answer) }
}

/** The answer as the events of a message stream. */
export function messageFrames(ask: Ask, answer: Answer): Frame[] {
  const opening = { stop_reason: null, stop_sequence: null, stop_details: null }
  const message = {
    ...messageHead(ask, answer),
    content: [],
    ...opening,
    ...usageMember(answer, 1),
  }
  const frames = [namedFrame('message_start', { message }), namedFrame('ping', {})]
  for (const [index, block] of blocksOf(ask, answer).entries()) addBlock(frames, index, block)
  const delta = { ...ending(answer), container: null }
  frames.push(namedFrame('message_delta', { delta, ...deltaUsage(answer) }))
  frames.push(namedFrame('message_stop', {}, 'end'))
  return frames
}

function addBlock(frames: Frame[], index: number, block: Block) {
  const { empty, opening, deltas, closing } = block
  frames.push(namedFrame('content_block_start', { index, content_block: empty }))
  if (opening) frames.push(namedFrame('content_block_delta', { index, delta: opening }))
  for (const delta of deltas) {
    frames.push(namedFrame('content_block_delta', { index, delta }, 'piece'))
  }
  if (closing) frames.push(namedFrame('content_block_delta', { index, delta: closing }))
  frames.push(namedFrame('content_block_stop', { index }))
}

function messageHead({ model }: Ask, { number }: Answer): Json {
  const id = `msg_scripted${number}`
  return { id, type: 'message', role: 'assistant', model, container: null, diagnostics: null }
}

function blocksOf(ask: Ask, answer: Answer): Block[] {
  const { redacted, text, toolCalls, number } = answer
  const blocks = thinkingBlocks(ask, answer)
  if (redacted !== undefined) {
    const full = { type: 'redacted_thinking', data: redacted }
    blocks.push({ empty: full, deltas: [], full })
  }
  if (text.length > 0) {
    blocks.push({
      empty: { type: 'text', text: '' },
      deltas: text.map((piece) => ({ type: 'text_delta', text: piece })),
      full: { type: 'text', text: text.join('') },
    })
  }
  return [...blocks, ...toolCalls.map((call, index) => toolBlock(call, `${number}${index}`))]
}

function thinkingBlocks({ body }: Ask, { thinking, number }: Answer): Block[] {
  if (!thinking) return []
  const signature = Buffer.from(`signature of scripted thinking ${number}`).toString('base64')
  // A request may ask for the signature without the thinking text.
  const shown = recordOf(body['thinking'])['display'] === 'omitted' ? [] : thinking
  return [
    {
      empty: { type: 'thinking', thinking: '', signature: '' },
      deltas: shown.map((piece) => ({ type: 'thinking_delta', thinking: piece })),
      closing: { type: 'signature_delta', signature },
      full: { type: 'thinking', thinking: shown.join(''), signature },
    },
  ]
}

function toolBlock({ name, pieces }: Answer['toolCalls'][number], number: string): Block {
  const head = { type: 'tool_use', id: `toolu_scripted${number}`, name }
  const caller = { type: 'direct' }
  return {
    empty: { ...head, input: {}, caller },
    opening: { type: 'input_json_delta', partial_json: '' },
    deltas: pieces.map((piece) => ({ type: 'input_json_delta', partial_json: piece })),
    full: { ...head, input: parsed(pieces.join('')), caller },
  }
}

/** The arguments of a script may be invalid JSON, which a plain answer can only contain as a string. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function ending({ stop, stopSequence, toolCalls, refusal }: Answer): Json {
  const isRefused = refusal !== undefined || stop === 'content_filter'
  const calls = toolCalls.length > 0 && stop === 'end' ? 'tool_use' : stopReasons[stop]
  const explanation = refusal?.join('') ?? null
  return {
    stop_reason: isRefused ? 'refusal' : calls,
    stop_sequence: stopSequence,
    stop_details: isRefused ? { type: 'refusal', category: null, explanation } : null,
  }
}

function usageMember({ usage }: Answer, outputTokens?: number): Json {
  if (!usage) return {}
  const { input, output, cached, cacheWrite, reasoning } = usage
  return {
    usage: {
      input_tokens: input,
      cache_creation_input_tokens: cacheWrite,
      cache_read_input_tokens: cached,
      cache_creation: { ephemeral_5m_input_tokens: cacheWrite, ephemeral_1h_input_tokens: 0 },
      output_tokens: outputTokens ?? output,
      ...(outputTokens === undefined && {
        output_tokens_details: { thinking_tokens: reasoning },
      }),
      service_tier: 'standard',
    },
  }
}

function deltaUsage({ usage }: Answer): Json {
  if (!usage) return {}
  const { input, output, cached, cacheWrite, reasoning } = usage
  return {
    usage: {
      input_tokens: input,
      cache_creation_input_tokens: cacheWrite,
      cache_read_input_tokens: cached,
      output_tokens: output,
      output_tokens_details: { thinking_tokens: reasoning },
    },
  }
}

export function messageError({ status, type, message, requestId }: Failure): Json {
  const usual = errorTypes[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error')
  return { type: 'error', error: { type: type ?? usual, message }, request_id: requestId }
}
