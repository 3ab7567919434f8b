import { zodResponseFormat } from 'openai/helpers/zod'
import type {
  ChatCompletion,
  ChatCompletionContentPart,
  ChatCompletionCreateParamsNonStreaming,
  ChatCompletionMessageParam,
} from 'openai/resources/chat/completions'

import {
  asContent,
  type Caller,
  type Connection,
  type Content,
  Place,
  type Said,
  type ToolChoice,
  toolNames,
  tools,
  type Wish,
} from './sdk-caller.ts'
import { explainOpenAi, openAiClient } from './sdk-openai-responses.ts'

export const openaiChat: Caller = {
  open(connection) {
    const messages: ChatCompletionMessageParam[] = []
    async function send(added: ChatCompletionMessageParam[], wish: Wish): Promise<Said> {
      messages.push(...added)
      const { completion, pieces, raw } = await ask(
        connection,
        toRequest(connection, messages, wish),
      )
      const { message } = completion.choices[0]!
      messages.push(message as ChatCompletionMessageParam)
      return { ...understand(completion), pieces, raw }
    }
    return {
      say: (content, wish = {}) =>
        send([{ role: 'user', content: asContent(content).map(toPart) }], wish),
      giveResults: (results, wish = {}) =>
        send(
          results.map(({ id, output }) => ({ role: 'tool', tool_call_id: id, content: output })),
          wish,
        ),
    }
  },
  explain: explainOpenAi,
}

/** Members of a message that the client does not know and hands on. */
type Beside = { reasoning_content?: string; reasoning_signature?: string }

async function ask(connection: Connection, request: ChatCompletionCreateParamsNonStreaming) {
  const { completions } = openAiClient(connection).chat
  if (!connection.isStreamed) {
    // The parsing helper takes an answer that was cut off for an error.
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
    const { reasoning_content = '' } = (chunk.choices[0]?.delta ?? {}) as Beside
    thinking += reasoning_content
  })
  const completion = (await stream.finalChatCompletion()) as ChatCompletion
  // The client keeps only the last delta of what it does not know.
  if (thinking !== '') {
    ;(completion.choices[0]!.message as Beside).reasoning_content = thinking
  }
  return { completion, raw: frames as unknown, pieces }
}

const none = { text: 0, arguments: 0 }

function toRequest(
  { model }: Connection,
  messages: ChatCompletionMessageParam[],
  wish: Wish,
): ChatCompletionCreateParamsNonStreaming {
  const { system, stop, topP, toolChoice, maxTokens } = wish
  return {
    model: wish.model ?? model,
    messages: system === undefined ? messages : [{ role: 'system', content: system }, ...messages],
    ...(maxTokens !== undefined && { max_completion_tokens: maxTokens }),
    ...(stop && { stop }),
    ...(topP !== undefined && { top_p: topP }),
    ...(wish.hasTools && { tools: toolNames.map(toTool) }),
    ...(toolChoice && { tool_choice: toChoice(toolChoice) }),
    ...(wish.isThinking && { reasoning_effort: 'low' }),
    ...(wish.isStructured && { response_format: zodResponseFormat(Place, 'place') }),
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

function understand({ choices, usage }: ChatCompletion): Omit<Said, 'pieces' | 'raw'> {
  const { message, finish_reason } = choices[0]!
  const { reasoning_content = '' } = message as Beside
  const { parsed } = message as { parsed?: unknown }
  return {
    text: message.content ?? '',
    thinking: reasoning_content,
    refusal: message.refusal ?? '',
    calls: (message.tool_calls ?? []).flatMap((call) =>
      call.type === 'function'
        ? [
            {
              ...{ id: call.id, name: call.function.name },
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
