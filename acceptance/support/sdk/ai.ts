import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import {
  APICallError,
  generateText,
  jsonSchema,
  type LanguageModel,
  type LanguageModelUsage,
  type ModelMessage,
  Output,
  streamText,
  tool,
  type ToolSet,
  type UserContent,
} from 'ai'

import {
  type Answer,
  asContent,
  type Caller,
  type Connection,
  type Content,
  mostTokens,
  Place,
  type RequestOptions,
  tools,
} from './caller.ts'

// The AI SDK would warn of everything that has a note in the compatibility table.
Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false })

type Options = Record<
  string,
  Record<string, string | boolean | { type: 'enabled'; budgetTokens: number }>
>
type Provider = {
  model(connection: Connection, sdk: AiSdk): LanguageModel
  options(request: RequestOptions): Options
}

/** What the tests use of a release of the client, whose majors name some things differently. */
export type AiSdk = {
  createAnthropic: typeof createAnthropic
  createOpenAI: typeof createOpenAI
  Output: typeof Output
  toolSet: ToolSet
  isCallError(error: unknown): error is APICallError
  askPlain(request: Request, options: RequestOptions): Promise<Result>
  askStreamed(request: Request, options: RequestOptions): Promise<Result>
}

const address = ({ baseUrl, key }: Connection) => ({ baseURL: `${baseUrl}/v1`, apiKey: key })
const reasoning = { forceReasoning: true, reasoningEffort: 'low' }

const providers = {
  ai_anthropic: {
    model: (connection, sdk) => sdk.createAnthropic(address(connection))(connection.model),
    options: ({ isThinking, isStructured }) => ({
      anthropic: {
        ...(isThinking && { thinking: { type: 'enabled' as const, budgetTokens: 1024 } }),
        ...(isStructured && { structuredOutputMode: 'outputFormat' }),
      },
    }),
  },
  ai_responses: {
    model: (connection, sdk) => sdk.createOpenAI(address(connection)).responses(connection.model),
    // Nothing is stored between calls, so the client has to send everything again.
    options: ({ isThinking }) => ({
      openai: {
        store: false,
        passThroughUnsupportedFiles: true,
        ...(isThinking && { ...reasoning, reasoningSummary: 'auto' }),
      },
    }),
  },
  ai_chat: {
    model: (connection, sdk) => sdk.createOpenAI(address(connection)).chat(connection.model),
    options: ({ isThinking }) => ({ openai: { ...(isThinking && reasoning) } }),
  },
} satisfies Record<string, Provider>

/** A model of this client, with the provider options that the gateway needs. */
export const modelOf = (caller: keyof typeof providers, connection: Connection) => ({
  model: providers[caller].model(connection, newest),
  providerOptions: providers[caller].options({}),
})

const newest: AiSdk = {
  createAnthropic,
  createOpenAI,
  Output,
  toolSet: {
    weather: tool({ ...tools.weather, inputSchema: jsonSchema(tools.weather.parameters) }),
    clock: tool({ ...tools.clock, inputSchema: jsonSchema(tools.clock.parameters) }),
  },
  isCallError: (error) => APICallError.isInstance(error),
  askPlain,
  askStreamed,
}

export const createAiCallers = (sdk: AiSdk) => ({
  ai_anthropic: createCaller(providers.ai_anthropic, sdk),
  ai_responses: createCaller(providers.ai_responses, sdk),
  ai_chat: createCaller(providers.ai_chat, sdk),
})
export const aiCallers = createAiCallers(newest)

function createCaller(provider: Provider, sdk: AiSdk): Caller {
  return {
    open(connection) {
      const messages: ModelMessage[] = []
      async function send(added: ModelMessage, options: RequestOptions): Promise<Answer> {
        messages.push(added)
        const model = { ...connection, ...(options.model && { model: options.model }) }
        const request = {
          model: provider.model(model, sdk),
          providerOptions: provider.options(options),
          messages,
          ...toSettings(sdk, options),
        }
        const ask = connection.isStreamed ? sdk.askStreamed : sdk.askPlain
        const { answer, newMessages } = await ask(request, options)
        messages.push(...newMessages)
        return answer
      }
      return {
        sendMessage: (content, options = {}) =>
          send({ role: 'user', content: asContent(content).map(toPart) }, options),
        sendToolResults: (results, options = {}) =>
          send({ role: 'tool', content: results.map(toResult) }, options),
      }
    },
    describeError(error) {
      const { name: kind } = (error as Error).constructor
      const { message } = error as Error
      if (!sdk.isCallError(error)) return { kind, status: undefined, message }
      return { kind, status: error.statusCode, message }
    },
  }
}

const toResult = ({ id, name, output }: { id: string; name: string; output: string }) => ({
  type: 'tool-result' as const,
  toolCallId: id,
  toolName: name,
  output: { type: 'text' as const, value: output },
})

function toSettings(sdk: AiSdk, options: RequestOptions) {
  const { system, stop, topP, toolChoice, maxTokens = mostTokens } = options
  const choice =
    typeof toolChoice === 'object'
      ? { type: 'tool' as const, toolName: toolChoice.name }
      : toolChoice
  return {
    maxRetries: 0,
    maxOutputTokens: maxTokens,
    ...(system !== undefined && { instructions: system }),
    ...(stop && { stopSequences: stop }),
    ...(topP !== undefined && { topP }),
    tools: options.hasTools ? sdk.toolSet : {},
    ...(choice && { toolChoice: choice }),
    output: options.isStructured ? sdk.Output.object({ schema: Place }) : sdk.Output.text(),
  }
}
export type Request = ReturnType<typeof toSettings> & {
  model: LanguageModel
  providerOptions: Options
  messages: ModelMessage[]
}

export type Result = { answer: Answer; newMessages: ModelMessage[] }

async function askPlain(request: Request, options: RequestOptions): Promise<Result> {
  const result = await generateText({ ...request, include: { responseBody: true } })
  const { text, reasoningText = '', toolCalls, finishReason, usage, finalStep } = result
  return {
    newMessages: result.responseMessages,
    answer: {
      text,
      thinking: reasoningText,
      refusal: '',
      stop: finishReason,
      calls: toolCalls.map(toCall),
      usage: toUsage(usage),
      raw: finalStep.response.body,
      parsed: options.isStructured ? result.output : undefined,
      pieces: { text: 0, arguments: 0 },
    },
  }
}

async function askStreamed(request: Request, options: RequestOptions): Promise<Result> {
  const pieces = { text: 0, arguments: 0 }
  const raw: unknown[] = []
  const result = streamText({ ...request, include: { rawChunks: true }, onError: () => undefined })
  for await (const part of result.stream) {
    if (part.type === 'error') throw part.error
    if (part.type === 'text-delta') pieces.text++
    if (part.type === 'tool-input-delta' && part.delta !== '') pieces.arguments++
    if (part.type === 'raw') raw.push(part.rawValue)
  }
  const parsed: unknown = options.isStructured ? await result.output : undefined
  return {
    newMessages: await result.responseMessages,
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

export const toCall = (call: { toolCallId: string; toolName: string; input: unknown }) => ({
  id: call.toolCallId,
  name: call.toolName,
  input: call.input,
})

export const toUsage = (usage: LanguageModelUsage) => ({
  input: usage.inputTokens ?? 0,
  output: usage.outputTokens ?? 0,
  cached: usage.inputTokenDetails.cacheReadTokens ?? 0,
  reasoning: usage.outputTokenDetails.reasoningTokens ?? 0,
})

function toPart(content: Content): Exclude<UserContent, string>[number] {
  switch (content.type) {
    case 'text':
      return content
    case 'image':
      return 'url' in content
        ? { type: 'file', mediaType: 'image/png', data: new URL(content.url) }
        : { type: 'file', mediaType: 'image/png', data: content.base64 }
    case 'pdf':
      return {
        type: 'file',
        mediaType: 'application/pdf',
        data: content.base64,
        filename: content.title,
      }
    case 'text_document':
      return {
        type: 'file',
        mediaType: 'text/plain',
        filename: content.title,
        data: Buffer.from(content.text).toString('base64'),
      }
  }
}
