import OpenAI, { APIError } from 'openai'
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod'
import type {
  Response,
  ResponseCreateParamsNonStreaming,
  ResponseInputContent,
  ResponseInputItem,
} from 'openai/resources/responses/responses'

import {
  type Answer,
  asContent,
  type Caller,
  type Connection,
  type Content,
  type Conversation,
  Place,
  type ReportedError,
  type RequestOptions,
  type ToolChoice,
  toolNames,
  tools,
} from './caller.ts'

/** What the tests use of a release of the client. */
export type OpenAiSdk = {
  OpenAI: typeof OpenAI
  APIError: typeof APIError
  zodTextFormat: typeof zodTextFormat
  zodResponseFormat: typeof zodResponseFormat
}

export const newestOpenAi: OpenAiSdk = { OpenAI, APIError, zodTextFormat, zodResponseFormat }

export const openAiClient = (
  { baseUrl, key }: Connection,
  { OpenAI: Client }: OpenAiSdk = newestOpenAi,
) => new Client({ baseURL: `${baseUrl}/v1`, apiKey: key, maxRetries: 0 })

export const openaiResponses = createResponsesCaller(newestOpenAi)

export function createResponsesCaller(sdk: OpenAiSdk): Caller {
  return {
    open: (connection) => open(sdk, connection),
    describeError: (error) => describeOpenAiError(sdk, error),
  }
}

function open(sdk: OpenAiSdk, connection: Connection): Conversation {
  const input: ResponseInputItem[] = []
  async function send(items: ResponseInputItem[], options: RequestOptions): Promise<Answer> {
    input.push(...items)
    const request = toRequest(sdk, { connection, input, options })
    const { response, pieces, raw } = await ask(openAiClient(connection, sdk), connection, request)
    input.push(...(response.output as ResponseInputItem[]))
    return { ...toAnswer(response), pieces, raw }
  }
  return {
    sendMessage: (content, options = {}) =>
      send([{ role: 'user', content: asContent(content).map(toPart) }], options),
    sendToolResults: (results, options = {}) =>
      send(
        results.map(({ id, output }) => ({ type: 'function_call_output', call_id: id, output })),
        options,
      ),
  }
}

export function describeOpenAiError(sdk: OpenAiSdk, error: unknown): ReportedError {
  const { name: kind } = (error as Error).constructor
  const { message } = error as Error
  const { status, code } = error instanceof sdk.APIError ? error : {}
  return { kind, status, message, code }
}

/** Thrown for a failed response, which this client returns like any other. */
class FailedResponse extends Error {}

async function ask(
  client: OpenAI,
  { isStreamed }: Connection,
  request: ResponseCreateParamsNonStreaming,
) {
  if (!isStreamed) {
    const response = await client.responses.parse(request)
    return { response: response as Parsed, raw: response, pieces: { text: 0, arguments: 0 } }
  }
  const pieces = { text: 0, arguments: 0 }
  const stream = client.responses.stream(request as never)
  stream.on('response.output_text.delta', () => pieces.text++)
  stream.on('response.function_call_arguments.delta', () => pieces.arguments++)
  const response = (await stream.finalResponse()) as Parsed
  if (response.status === 'failed') throw new FailedResponse(response.error?.message)
  return { response, raw: response, pieces }
}

type Parsed = Response & { output_parsed?: unknown }

type Asked = { connection: Connection; input: ResponseInputItem[]; options: RequestOptions }

function toRequest(
  sdk: OpenAiSdk,
  { connection: { model }, input, options }: Asked,
): ResponseCreateParamsNonStreaming {
  const { system, topP, toolChoice, maxTokens } = options
  return {
    model: options.model ?? model,
    input,
    store: false,
    ...(system !== undefined && { instructions: system }),
    ...(maxTokens !== undefined && { max_output_tokens: maxTokens }),
    ...(topP !== undefined && { top_p: topP }),
    ...(options.hasTools && { tools: toolNames.map(toTool) }),
    ...(toolChoice && { tool_choice: toChoice(toolChoice) }),
    ...(options.isThinking && {
      reasoning: { effort: 'low', summary: 'auto' },
      include: ['reasoning.encrypted_content'],
    }),
    ...(options.isStructured && { text: { format: sdk.zodTextFormat(Place, 'place') } }),
  }
}

const toTool = (name: (typeof toolNames)[number]) => ({
  type: 'function' as const,
  name,
  strict: true,
  description: tools[name].description,
  parameters: tools[name].parameters,
})

const toChoice = (choice: ToolChoice) =>
  typeof choice === 'object' ? { type: 'function' as const, name: choice.name } : choice

function toPart(content: Content): ResponseInputContent {
  switch (content.type) {
    case 'text':
      return { type: 'input_text', text: content.text }
    case 'image':
      return {
        type: 'input_image',
        detail: 'auto',
        image_url: 'url' in content ? content.url : `data:image/png;base64,${content.base64}`,
      }
    case 'pdf':
      return {
        type: 'input_file',
        filename: content.title,
        file_data: `data:application/pdf;base64,${content.base64}`,
      }
    case 'text_document':
      return {
        type: 'input_file',
        filename: content.title,
        file_data: `data:text/plain;base64,${Buffer.from(content.text).toString('base64')}`,
      }
  }
}

function toAnswer(response: Parsed): Omit<Answer, 'pieces' | 'raw'> {
  const { output, usage, status, incomplete_details } = response
  const parts = output.flatMap((item) => (item.type === 'message' ? item.content : []))
  return {
    text: response.output_text,
    thinking: output
      .flatMap((item) => (item.type === 'reasoning' ? item.summary : []))
      .map(({ text }) => text)
      .join(''),
    refusal: parts.map((part) => (part.type === 'refusal' ? part.refusal : '')).join(''),
    calls: output.flatMap((item) =>
      item.type === 'function_call'
        ? [{ id: item.call_id, name: item.name, input: JSON.parse(item.arguments) as unknown }]
        : [],
    ),
    stop: incomplete_details?.reason ?? String(status),
    usage: {
      input: usage?.input_tokens ?? 0,
      output: usage?.output_tokens ?? 0,
      cached: usage?.input_tokens_details.cached_tokens ?? 0,
      reasoning: usage?.output_tokens_details.reasoning_tokens ?? 0,
    },
    parsed: response.output_parsed,
  }
}
