import type OpenAI from 'openai'
import type {
  ChatCompletion,
  ChatCompletionContentPart,
  ChatCompletionCreateParamsNonStreaming,
  ChatCompletionMessageParam,
} from 'openai/resources/chat/completions'

import {
  type Answer,
  asContent,
  type Caller,
  type Connection,
  type Content,
  type Conversation,
  Place,
  type RequestOptions,
  type ToolChoice,
  toolNames,
  tools,
} from './caller.ts'
import {
  describeOpenAiError,
  newestOpenAi,
  openAiClient,
  type OpenAiSdk,
} from './openai-responses.ts'

export const openaiChat = createChatCaller(newestOpenAi)

export function createChatCaller(sdk: OpenAiSdk): Caller {
  return {
    open: (connection) => open(sdk, connection),
    describeError: (error) => describeOpenAiError(sdk, error),
  }
}

function open(sdk: OpenAiSdk, connection: Connection): Conversation {
  const messages: ChatCompletionMessageParam[] = []
  async function send(
    added: ChatCompletionMessageParam[],
    options: RequestOptions,
  ): Promise<Answer> {
    messages.push(...added)
    const request = toRequest(sdk, { connection, messages, options })
    const client = openAiClient(connection, sdk)
    const { completion, pieces, raw } = await ask(client, connection, request)
    const { message } = completion.choices[0]!
    messages.push(message as ChatCompletionMessageParam)
    return { ...toAnswer(completion), pieces, raw }
  }
  return {
    sendMessage: (content, options = {}) =>
      send([{ role: 'user', content: asContent(content).map(toPart) }], options),
    sendToolResults: (results, options = {}) =>
      send(
        results.map(({ id, output }) => ({ role: 'tool', tool_call_id: id, content: output })),
        options,
      ),
  }
}

/** Members of a message that the client does not know and passes through. */
type ExtraMembers = { reasoning_content?: string; reasoning_signature?: string }

async function ask(
  client: OpenAI,
  { isStreamed }: Connection,
  request: ChatCompletionCreateParamsNonStreaming,
) {
  const { completions } = client.chat
  if (!isStreamed) {
    // The parsing helper throws for an answer that was cut off.
    const isParsed = request.response_format !== undefined
    const completion = await (isParsed ? completions.parse(request) : completions.create(request))
    return { completion: completion as ChatCompletion, raw: completion as unknown, pieces: none }
  }
  const pieces = { text: 0, arguments: 0 }
  const frames: unknown[] = []
  let thinking = ''
  const stream = completions.stream({
    ...(request as object as Parameters<typeof completions.stream>[0]),
    stream_options: { include_usage: true },
  })
  stream.on('content', () => pieces.text++)
  stream.on('tool_calls.function.arguments.delta', ({ arguments_delta: piece }) => {
    if (piece !== '') pieces.arguments++
  })
  stream.on('chunk', (chunk) => {
    frames.push(chunk)
    const { reasoning_content = '' } = (chunk.choices[0]?.delta ?? {}) as ExtraMembers
    thinking += reasoning_content
  })
  const completion = (await stream.finalChatCompletion()) as ChatCompletion
  // Of a member that it does not know, the client keeps only the last delta.
  if (thinking !== '') {
    ;(completion.choices[0]!.message as ExtraMembers).reasoning_content = thinking
  }
  return { completion, raw: frames as unknown, pieces }
}

const none = { text: 0, arguments: 0 }

type Asked = {
  connection: Connection
  messages: ChatCompletionMessageParam[]
  options: RequestOptions
}

function toRequest(
  sdk: OpenAiSdk,
  { connection: { model }, messages, options }: Asked,
): ChatCompletionCreateParamsNonStreaming {
  const { system, stop, topP, toolChoice, maxTokens } = options
  return {
    model: options.model ?? model,
    messages: system === undefined ? messages : [{ role: 'system', content: system }, ...messages],
    ...(maxTokens !== undefined && { max_completion_tokens: maxTokens }),
    ...(stop && { stop }),
    ...(topP !== undefined && { top_p: topP }),
    ...(options.hasTools && { tools: toolNames.map(toTool) }),
    ...(toolChoice && { tool_choice: toChoice(toolChoice) }),
    ...(options.isThinking && { reasoning_effort: 'low' }),
    ...(options.isStructured && { response_format: sdk.zodResponseFormat(Place, 'place') }),
  }
}

const toTool = (name: (typeof toolNames)[number]) => ({
  type: 'function' as const,
  function: {
    name,
    strict: true,
    description: tools[name].description,
    parameters: tools[name].parameters,
  },
})

const toChoice = (choice: ToolChoice) =>
  typeof choice === 'object'
    ? { type: 'function' as const, function: { name: choice.name } }
    : choice

function toPart(content: Content): ChatCompletionContentPart {
  switch (content.type) {
    case 'text':
      return { type: 'text', text: content.text }
    case 'image': {
      const url = 'url' in content ? content.url : `data:image/png;base64,${content.base64}`
      return { type: 'image_url', image_url: { url } }
    }
    case 'pdf':
      return toFile(content.title, `data:application/pdf;base64,${content.base64}`)
    case 'text_document': {
      const data = Buffer.from(content.text).toString('base64')
      return toFile(content.title, `data:text/plain;base64,${data}`)
    }
  }
}

const toFile = (filename: string, file_data: string) => ({
  type: 'file' as const,
  file: { filename, file_data },
})

function toAnswer({ choices, usage }: ChatCompletion): Omit<Answer, 'pieces' | 'raw'> {
  const { message, finish_reason } = choices[0]!
  const { reasoning_content = '' } = message as ExtraMembers
  const { parsed } = message as { parsed?: unknown }
  return {
    text: message.content ?? '',
    thinking: reasoning_content,
    refusal: message.refusal ?? '',
    calls: (message.tool_calls ?? []).flatMap((call) =>
      call.type === 'function'
        ? [
            {
              id: call.id,
              name: call.function.name,
              input: JSON.parse(call.function.arguments) as unknown,
            },
          ]
        : [],
    ),
    stop: finish_reason,
    usage: {
      input: usage?.prompt_tokens ?? 0,
      output: usage?.completion_tokens ?? 0,
      cached: usage?.prompt_tokens_details?.cached_tokens ?? 0,
      reasoning: usage?.completion_tokens_details?.reasoning_tokens ?? 0,
    },
    parsed,
  }
}
