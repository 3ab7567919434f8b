import type { CallerId } from '@gatehouse/tools/compatibility'
import * as ai from 'ai-previous'
import { createAnthropic } from 'ai-sdk-anthropic-previous'
import { createOpenAI } from 'ai-sdk-openai-previous'
import Anthropic, { APIError as AnthropicError } from 'anthropic-sdk-previous'
import { zodOutputFormat } from 'anthropic-sdk-previous/helpers/zod'
import OpenAI, { APIError as OpenAIError } from 'openai-previous'
import { zodResponseFormat, zodTextFormat } from 'openai-previous/helpers/zod'

import { type AiSdk, createAiCallers, type Request, type Result, toCall, toUsage } from './ai.ts'
import { type AnthropicSdk, createAnthropicCaller } from './anthropic.ts'
import { type Caller, type RequestOptions, tools } from './caller.ts'
import { createChatCaller } from './openai-chat.ts'
import { createResponsesCaller, type OpenAiSdk } from './openai-responses.ts'

// The previous major of each client. What the tests use has the same form in both, but for the AI SDK; the types of the two are
// different ones all the same.

const anthropicSdk = { Anthropic, APIError: AnthropicError, zodOutputFormat }
const openAiSdk = { OpenAI, APIError: OpenAIError, zodTextFormat, zodResponseFormat }

type PreviousRequest = Parameters<typeof ai.generateText>[0]

/** The system prompt has another name. */
const toPrevious = ({ instructions, ...request }: Request) =>
  ({ ...request, ...(instructions !== undefined && { system: instructions }) }) as PreviousRequest

async function askPlain(request: Request, { isStructured }: RequestOptions): Promise<Result> {
  const result = await ai.generateText(toPrevious(request))
  return {
    newMessages: result.response.messages as Result['newMessages'],
    answer: {
      text: result.text,
      thinking: result.reasoningText ?? '',
      refusal: '',
      stop: result.finishReason,
      calls: result.toolCalls.map(toCall),
      usage: toUsage(result.usage),
      raw: result.response.body,
      parsed: isStructured ? result.output : undefined,
      pieces: { text: 0, arguments: 0 },
    },
  }
}

async function askStreamed(request: Request, { isStructured }: RequestOptions): Promise<Result> {
  const pieces = { text: 0, arguments: 0 }
  const raw: unknown[] = []
  const result = ai.streamText({
    ...toPrevious(request),
    includeRawChunks: true,
    onError: () => undefined,
  })
  for await (const part of result.fullStream) {
    if (part.type === 'error') throw toError(part.error)
    if (part.type === 'text-delta') pieces.text++
    if (part.type === 'tool-input-delta' && part.delta !== '') pieces.arguments++
    if (part.type === 'raw') raw.push(part.rawValue)
  }
  const parsed: unknown = isStructured ? await result.output : undefined
  return {
    newMessages: (await result.response).messages as Result['newMessages'],
    answer: {
      text: await result.text,
      thinking: (await result.reasoningText) ?? '',
      refusal: '',
      stop: await result.finishReason,
      calls: (await result.toolCalls).map(toCall),
      usage: toUsage(await result.usage),
      raw,
      parsed,
      pieces,
    },
  }
}

/** Named as in the next major, which makes an error of what this one hands on as the provider sent it. */
class StreamProviderError extends Error {}

const toError = (error: unknown) =>
  error instanceof Error ? error : new StreamProviderError((error as { message?: string }).message)

const toTool = (name: keyof typeof tools) =>
  ai.tool({ ...tools[name], inputSchema: ai.jsonSchema(tools[name].parameters) })

const aiSdk = {
  createAnthropic,
  createOpenAI,
  Output: ai.Output,
  toolSet: { weather: toTool('weather'), clock: toTool('clock') },
  isCallError: (error: unknown) => ai.APICallError.isInstance(error),
  askPlain,
  askStreamed,
}

export const previousCallers: Record<CallerId, Caller> = {
  anthropic: createAnthropicCaller(anthropicSdk as unknown as AnthropicSdk),
  openai_responses: createResponsesCaller(openAiSdk as unknown as OpenAiSdk),
  openai_chat: createChatCaller(openAiSdk as unknown as OpenAiSdk),
  ...createAiCallers(aiSdk as unknown as AiSdk),
}
