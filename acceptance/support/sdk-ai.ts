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
  asContent,
  type Caller,
  type Connection,
  type Content,
  mostTokens,
  Place,
  type Said,
  tools,
  type Wish,
} from './sdk-caller.ts'

// It would warn of everything that the table has a note for.
Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false })

type Options = Record<
  string,
  Record<string, string | boolean | { type: 'enabled'; budgetTokens: number }>
>
type Provider = { model(connection: Connection): LanguageModel; options(wish: Wish): Options }

const address = ({ baseUrl, key }: Connection) => ({ baseURL: `${baseUrl}/v1`, apiKey: key })
const reasons = { forceReasoning: true, reasoningEffort: 'low' }

const providers = {
  ai_anthropic: {
    model: (connection) => createAnthropic(address(connection))(connection.model),
    options: ({ isThinking, isStructured }) => ({
      anthropic: {
        ...(isThinking && { thinking: { type: 'enabled' as const, budgetTokens: 1024 } }),
        ...(isStructured && { structuredOutputMode: 'outputFormat' }),
      },
    }),
  },
  ai_responses: {
    model: (connection) => createOpenAI(address(connection)).responses(connection.model),
    // Nothing is stored between calls, so the client has to send everything again.
    options: ({ isThinking }) => ({
      openai: {
        ...{ store: false, passThroughUnsupportedFiles: true },
        ...(isThinking && { ...reasons, reasoningSummary: 'auto' }),
      },
    }),
  },
  ai_chat: {
    model: (connection) => createOpenAI(address(connection)).chat(connection.model),
    options: ({ isThinking }) => ({ openai: { ...(isThinking && reasons) } }),
  },
} satisfies Record<string, Provider>

/** A model of this client with the options that it needs here. */
export const modelOf = (caller: keyof typeof providers, connection: Connection) => ({
  model: providers[caller].model(connection),
  providerOptions: providers[caller].options({}),
})

export const aiAnthropic = createCaller(providers.ai_anthropic)
export const aiResponses = createCaller(providers.ai_responses)
export const aiChat = createCaller(providers.ai_chat)

function createCaller(provider: Provider): Caller {
  return {
    open(connection) {
      const messages: ModelMessage[] = []
      async function send(added: ModelMessage, wish: Wish): Promise<Said> {
        messages.push(added)
        const request = toRequest(provider, connection, messages, wish)
        const ask = connection.isStreamed ? askStreamed : askPlain
        const { said, answered } = await ask(request, wish)
        messages.push(...answered)
        return said
      }
      return {
        say: (content, wish = {}) =>
          send({ role: 'user', content: asContent(content).map(toPart) }, wish),
        giveResults: (results, wish = {}) =>
          send({ role: 'tool', content: results.map(toResult) }, wish),
      }
    },
    explain(error) {
      const { name: kind } = (error as Error).constructor
      const { message } = error as Error
      if (!APICallError.isInstance(error)) return { kind, status: undefined, message }
      return { kind, status: error.statusCode, message, body: error.responseBody }
    },
  }
}

const toResult = ({ id, name, output }: { id: string; name: string; output: string }) => ({
  type: 'tool-result' as const,
  ...{ toolCallId: id, toolName: name, output: { type: 'text' as const, value: output } },
})

const toolSet = {
  weather: tool({ ...tools.weather, inputSchema: jsonSchema(tools.weather.parameters) }),
  clock: tool({ ...tools.clock, inputSchema: jsonSchema(tools.clock.parameters) }),
}

function toRequest(
  provider: Provider,
  connection: Connection,
  messages: ModelMessage[],
  wish: Wish,
) {
  const { system, stop, topP, toolChoice, maxTokens = mostTokens } = wish
  const choice =
    typeof toolChoice === 'object'
      ? { type: 'tool' as const, toolName: toolChoice.name }
      : toolChoice
  return {
    model: provider.model({ ...connection, ...(wish.model && { model: wish.model }) }),
    messages,
    maxRetries: 0,
    maxOutputTokens: maxTokens,
    providerOptions: provider.options(wish),
    ...(system !== undefined && { instructions: system }),
    ...(stop && { stopSequences: stop }),
    ...(topP !== undefined && { topP }),
    tools: (wish.hasTools ? toolSet : {}) as ToolSet,
    ...(choice && { toolChoice: choice }),
    output: wish.isStructured ? Output.object({ schema: Place }) : Output.text(),
  }
}
type Request = ReturnType<typeof toRequest>

type Asked = { said: Said; answered: ModelMessage[] }

async function askPlain(request: Request, wish: Wish): Promise<Asked> {
  const result = await generateText({ ...request, include: { responseBody: true } })
  const { text, reasoningText = '', toolCalls, finishReason, usage, finalStep } = result
  return {
    answered: result.responseMessages,
    said: {
      ...{ text, thinking: reasoningText, refusal: '', stop: finishReason },
      calls: toolCalls.map(toCall),
      usage: toUsage(usage),
      raw: finalStep.response.body,
      parsed: wish.isStructured ? result.output : undefined,
      pieces: { text: 0, arguments: 0 },
    },
  }
}

async function askStreamed(request: Request, wish: Wish): Promise<Asked> {
  const pieces = { text: 0, arguments: 0 }
  const raw: unknown[] = []
  const result = streamText({ ...request, include: { rawChunks: true }, onError: () => undefined })
  for await (const part of result.stream) {
    if (part.type === 'error') throw part.error
    if (part.type === 'text-delta') pieces.text++
    if (part.type === 'tool-input-delta' && part.delta !== '') pieces.arguments++
    if (part.type === 'raw') raw.push(part.rawValue)
  }
  const parsed: unknown = wish.isStructured ? await result.output : undefined
  return {
    answered: await result.responseMessages,
    said: {
      ...{ text: await result.text, thinking: (await result.reasoningText) ?? '', refusal: '' },
      stop: await result.finishReason,
      calls: (await result.toolCalls).map(toCall),
      usage: toUsage(await result.usage),
      ...{ raw, parsed, pieces },
    },
  }
}

const toCall = (call: { toolCallId: string; toolName: string; input: unknown }) => ({
  ...{ id: call.toolCallId, name: call.toolName, input: call.input },
})

const toUsage = (usage: LanguageModelUsage) => ({
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
        ...{ type: 'file', mediaType: 'application/pdf' },
        ...{ data: content.base64, filename: content.title },
      }
    case 'text_document':
      return {
        ...{ type: 'file', mediaType: 'text/plain', filename: content.title },
        data: Buffer.from(content.text).toString('base64'),
      }
  }
}
