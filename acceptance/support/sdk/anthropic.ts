import Anthropic, { APIError } from '@anthropic-ai/sdk'
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod'
import type {
  ContentBlockParam,
  Message,
  MessageCreateParamsNonStreaming,
  MessageParam,
  ToolChoice as WireChoice,
} from '@anthropic-ai/sdk/resources/messages'

import {
  type Answer,
  asContent,
  type Caller,
  type Connection,
  type Content,
  type Conversation,
  mostTokens,
  Place,
  type ReportedError,
  type RequestOptions,
  type ToolChoice,
  toolNames,
  tools,
} from './caller.ts'

/** What the tests use of a release of the client. */
export type AnthropicSdk = {
  Anthropic: typeof Anthropic
  APIError: typeof APIError
  zodOutputFormat: typeof zodOutputFormat
}

export const anthropic = createAnthropicCaller({ Anthropic, APIError, zodOutputFormat })

export function createAnthropicCaller(sdk: AnthropicSdk): Caller {
  return {
    open: (connection) => open(sdk, connection),
    describeError: (error) => describeError(sdk, error),
  }
}

function open(sdk: AnthropicSdk, connection: Connection): Conversation {
  const messages: MessageParam[] = []
  async function send(content: ContentBlockParam[], options: RequestOptions): Promise<Answer> {
    messages.push({ role: 'user', content })
    const request = toRequest(sdk, { connection, messages, options })
    const { message, pieces, raw } = await ask(sdk, connection, request)
    messages.push({ role: 'assistant', content: message.content })
    return { ...toAnswer(message), pieces, raw }
  }
  return {
    sendMessage: (content, options = {}) => send(asContent(content).map(toBlock), options),
    sendToolResults: (results, options = {}) =>
      send(
        results.map(({ id, output }) => ({
          type: 'tool_result',
          tool_use_id: id,
          content: output,
        })),
        options,
      ),
  }
}

/** The client has no member for codes, but keeps the body. */
function describeError(sdk: AnthropicSdk, error: unknown): ReportedError {
  const { name: kind } = (error as Error).constructor
  const { message } = error as Error
  const known = error instanceof sdk.APIError ? error : undefined
  const body = known?.error as { error?: { code?: unknown } } | undefined
  return { kind, status: known?.status, message, code: body?.error?.code }
}

async function ask(
  sdk: AnthropicSdk,
  { baseUrl, key, isStreamed }: Connection,
  request: MessageCreateParamsNonStreaming,
) {
  const client = new sdk.Anthropic({ baseURL: baseUrl, apiKey: key, maxRetries: 0 })
  if (!isStreamed) {
    const message = await client.messages.parse(request)
    return { message, raw: message as unknown, pieces: { text: 0, arguments: 0 } }
  }
  const pieces = { text: 0, arguments: 0 }
  const frames: unknown[] = []
  const stream = client.messages.stream(request)
  stream.on('text', () => pieces.text++)
  stream.on('inputJson', (piece) => (pieces.arguments += piece === '' ? 0 : 1))
  stream.on('streamEvent', (event) => frames.push(event))
  return { message: await stream.finalMessage(), pieces, raw: frames as unknown }
}

type Asked = { connection: Connection; messages: MessageParam[]; options: RequestOptions }

function toRequest(
  sdk: AnthropicSdk,
  { connection: { model }, messages, options }: Asked,
): MessageCreateParamsNonStreaming {
  const { system, stop, topP, toolChoice, maxTokens = mostTokens } = options
  return {
    model: options.model ?? model,
    messages,
    max_tokens: maxTokens,
    ...(system !== undefined && { system }),
    ...(stop && { stop_sequences: stop }),
    ...(topP !== undefined && { top_p: topP }),
    ...(options.hasTools && { tools: toolNames.map(toTool) }),
    ...(toolChoice && { tool_choice: toChoice(toolChoice) }),
    ...(options.isThinking && { thinking: { type: 'enabled', budget_tokens: 1024 } }),
    ...(options.isStructured && { output_config: { format: sdk.zodOutputFormat(Place) } }),
  }
}

const toTool = (name: (typeof toolNames)[number]) => ({
  name,
  description: tools[name].description,
  input_schema: tools[name].parameters,
})

function toChoice(choice: ToolChoice): WireChoice {
  if (typeof choice === 'object') return { type: 'tool', name: choice.name }
  return { type: choice === 'required' ? 'any' : choice }
}

function toBlock(content: Content): ContentBlockParam {
  switch (content.type) {
    case 'text':
      return content
    case 'image':
      return 'url' in content
        ? { type: 'image', source: { type: 'url', url: content.url } }
        : {
            type: 'image',
            source: { type: 'base64', media_type: 'image/png', data: content.base64 },
          }
    case 'pdf':
      return {
        type: 'document',
        title: content.title,
        source: { type: 'base64', media_type: 'application/pdf', data: content.base64 },
      }
    case 'text_document':
      return {
        type: 'document',
        title: content.title,
        source: { type: 'text', media_type: 'text/plain', data: content.text },
      }
  }
}

function toAnswer(message: Message & { parsed_output?: unknown }): Omit<Answer, 'pieces' | 'raw'> {
  const { content, usage, stop_reason, parsed_output } = message
  const inside = (read: (block: Message['content'][number]) => string) => content.map(read).join('')
  return {
    text: inside((block) => (block.type === 'text' ? block.text : '')),
    thinking: inside((block) => (block.type === 'thinking' ? block.thinking : '')),
    refusal: message.stop_details?.explanation ?? '',
    calls: content.flatMap((block) => (block.type === 'tool_use' ? [block] : [])),
    stop: String(stop_reason),
    usage: {
      // Messages reports cached input separately.
      input:
        usage.input_tokens +
        (usage.cache_read_input_tokens ?? 0) +
        (usage.cache_creation_input_tokens ?? 0),
      output: usage.output_tokens,
      cached: usage.cache_read_input_tokens ?? 0,
      reasoning: usage.output_tokens_details?.thinking_tokens ?? 0,
    },
    parsed: parsed_output,
  }
}
