import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'

import type { Engine, Outcome } from './engine.ts'
import { readGenerationOptions, recordOf, type Body } from './request.ts'

type CompletionCall = { engine: Engine; body: Body; response: ServerResponse; signal: AbortSignal }

/** Answers one chat completion, as a stream of chunks or as one object. */
export async function answerCompletion({ engine, body, response, signal }: CompletionCall) {
  if (signal.aborted) return
  const options = readGenerationOptions(body, engine.fit)
  const pieces = engine.generate(options, signal)
  const head = {
    id: `chatcmpl-${randomUUID()}`,
    created: Math.floor(Date.now() / 1000),
    model: typeof body['model'] === 'string' ? body['model'] : 'stories260K',
  }
  if (body['stream'] === true) return sendStream({ head, pieces, body, response, signal })
  let text = ''
  let step = await pieces.next()
  for (; !step.done; step = await pieces.next()) text += step.value
  const message = { role: 'assistant', content: text }
  const choice = { index: 0, message, logprobs: null, finish_reason: step.value.finish }
  const completion = { object: 'chat.completion', choices: [choice], usage: usageOf(step.value) }
  response
    .writeHead(200, { 'content-type': 'application/json' })
    .end(JSON.stringify({ ...head, ...completion }))
}

type Streamed = Omit<CompletionCall, 'engine'> & {
  head: Body
  pieces: AsyncGenerator<string, Outcome>
}

async function sendStream({ head, pieces, body, response, signal }: Streamed) {
  const hasUsage = recordOf(body['stream_options'])['include_usage'] === true
  const send = (members: Body) => {
    const chunk = { ...head, object: 'chat.completion.chunk', ...members }
    return response.write(`data: ${JSON.stringify(chunk)}\n\n`)
  }
  const choose = (delta: Body, finish_reason: string | null = null) =>
    send({
      choices: [{ index: 0, delta, logprobs: null, finish_reason }],
      ...(hasUsage && { usage: null }),
    })
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  choose({ role: 'assistant', content: '' })
  let step = await pieces.next()
  for (; !step.done; step = await pieces.next()) {
    if (!choose({ content: step.value })) await untilDrained(response, signal)
  }
  if (signal.aborted) return
  choose({}, step.value.finish)
  if (hasUsage) send({ choices: [], usage: usageOf(step.value) })
  response.end('data: [DONE]\n\n')
}

async function untilDrained(response: ServerResponse, signal: AbortSignal) {
  if (signal.aborted) return
  await new Promise<void>((resolve) => {
    response.once('drain', resolve)
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

function usageOf({ promptTokens, completionTokens }: Outcome): Body {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  }
}
