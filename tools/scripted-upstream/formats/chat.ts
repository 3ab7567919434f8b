import type { Answer, Stop } from '../answer.ts'
import type { Ask } from '../ask.ts'
import { dataFrame, type Failure, type Frame } from '../frame.ts'
import { recordOf, type Json } from '../json.ts'

const finishReasons = {
  end: 'stop',
  max_tokens: 'length',
  stop_sequence: 'stop',
  content_filter: 'content_filter',
} as const satisfies Record<Stop, string>

/** The answer as one `chat.completion` object. */
export function plainCompletion(ask: Ask, answer: Answer): Json {
  const { text, refusal, toolCalls, number } = answer
  const calls = toolCalls.map(({ name, pieces }, index) => ({
    id: `call_scripted${number}${index}`,
    type: 'function',
    function: { name, arguments: pieces.join('') },
  }))
  const message = {
    role: 'assistant',
    content: text.length === 0 && (refusal ?? calls[0]) ? null : text.join(''),
    refusal: refusal?.join('') ?? null,
    ...(answer.isThinkingScripted && { reasoning_content: answer.thinking?.join('') }),
    annotations: [],
    ...(calls.length > 0 && { tool_calls: calls }),
  }
  const choice = { index: 0, message, logprobs: null, finish_reason: finishReason(answer) }
  return {
    ...completionHead(ask, answer, 'chat.completion'),
    choices: [choice],
    ...(answer.usage && { usage: usageOf(answer.usage) }),
  }
}

/** The answer as the chunks of a chat completion stream. */
export function completionFrames(ask: Ask, answer: Answer): Frame[] {
  const { include_usage, include_obfuscation } = recordOf(ask.body['stream_options'])
  const head = completionHead(ask, answer, 'chat.completion.chunk')
  const usage = include_usage === true ? { usage: null } : {}
  const padding = include_obfuscation === true ? { obfuscation: 'aB3dE6gH9' } : {}
  const chunk = (delta: Json, kind: Frame['kind'] = 'frame', finish_reason: unknown = null) => {
    const choices = [{ index: 0, delta, logprobs: null, finish_reason }]
    return dataFrame({ ...head, choices, ...usage, ...padding }, kind)
  }
  const frames = [chunk(firstDelta(answer))]
  for (const { delta, isPiece } of deltasOf(answer)) {
    frames.push(chunk(delta, isPiece ? 'piece' : 'frame'))
  }
  frames.push(chunk({}, 'frame', finishReason(answer)))
  if (include_usage === true && answer.usage) {
    frames.push(dataFrame({ ...head, choices: [], usage: usageOf(answer.usage), ...padding }))
  }
  frames.push({ text: 'data: [DONE]\n\n', kind: 'end' })
  return frames
}

function firstDelta({ text, toolCalls, refusal }: Answer): Json {
  if (refusal) return { role: 'assistant', content: null, refusal: '' }
  const hasOnlyCalls = text.length === 0 && toolCalls.length > 0
  return { role: 'assistant', content: hasOnlyCalls ? null : '', refusal: null }
}

function deltasOf(answer: Answer): { delta: Json; isPiece: boolean }[] {
  const { thinking = [], isThinkingScripted, text, refusal = [], toolCalls, number } = answer
  // OpenAI only reports the number of reasoning tokens; scripted thinking is for servers that also send its text.
  const shown = isThinkingScripted ? thinking : []
  const calls = toolCalls.flatMap(({ name, pieces }, index) => {
    const start = { id: `call_scripted${number}${index}`, type: 'function' }
    return [
      { ...callDelta(index, { name, arguments: '' }, start), isPiece: false },
      ...pieces.map((piece) => ({ ...callDelta(index, { arguments: piece }), isPiece: true })),
    ]
  })
  return [
    ...shown.map((piece) => ({ delta: { reasoning_content: piece }, isPiece: true })),
    ...text.map((content) => ({ delta: { content }, isPiece: true })),
    ...refusal.map((piece) => ({ delta: { refusal: piece }, isPiece: true })),
    ...calls,
  ]
}

function callDelta(index: number, inner: Json, start: Json = {}): { delta: Json } {
  return { delta: { tool_calls: [{ index, ...start, function: inner }] } }
}

function completionHead({ model, body }: Ask, { number }: Answer, object: string): Json {
  return {
    id: `chatcmpl-scripted${number}`,
    object,
    created: Math.floor(Date.now() / 1000),
    model,
    service_tier: body['service_tier'] ?? 'default',
    system_fingerprint: 'fp_scripted',
  }
}

function finishReason({ stop, toolCalls }: Answer): string {
  return toolCalls.length > 0 && stop === 'end' ? 'tool_calls' : finishReasons[stop]
}

function usageOf({ input, output, cached, cacheWrite, reasoning }: NonNullable<Answer['usage']>) {
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: {
      cached_tokens: cached,
      audio_tokens: 0,
      ...(cacheWrite !== 0 && { cache_write_tokens: cacheWrite }),
    },
    completion_tokens_details: {
      reasoning_tokens: reasoning,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  }
}

const codes: Record<number, string> = {
  401: 'invalid_api_key',
  404: 'model_not_found',
  429: 'rate_limit_exceeded',
}

export function completionError({ status, type, message, code }: Failure): Json {
  const usual = status < 500 ? 'invalid_request_error' : 'server_error'
  const named = status === 429 ? 'rate_limit_error' : usual
  const usualCode = codes[status] ?? null
  return { error: { message, type: type ?? named, param: null, code: code ?? usualCode } }
}
