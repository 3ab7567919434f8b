import Anthropic from '@anthropic-ai/sdk'
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod'
import type { CallerId } from '@gatehouse/tools/compatibility'
import { generateText, isStepCount, streamText, tool } from 'ai'
import { ResponsesToolRunner } from 'openai/helpers/responses-tool-runner'

import { modelOf as aiModel } from './ai.ts'
import { type Connection, mostTokens, tools } from './caller.ts'
import { openAiClient } from './openai-responses.ts'

// The tool loop of each client: it runs our function when the model calls it, and sends the model the result.

type Run = (city: string) => string
type Loop = (connection: Connection, prompt: string, run: Run) => Promise<string>

const { description, schema, parameters } = tools.weather

const anthropic: Loop = async (connection, prompt, run) => {
  const { baseUrl, key, model, isStreamed } = connection
  const client = new Anthropic({ baseURL: baseUrl, apiKey: key, maxRetries: 0 })
  const runner = client.beta.messages.toolRunner({
    model,
    max_tokens: mostTokens,
    messages: [{ role: 'user', content: prompt }],
    tools: [
      betaZodTool({
        name: 'weather',
        description,
        inputSchema: schema,
        run: ({ city }) => run(city),
      }),
    ],
    stream: isStreamed,
  })
  const { content } = await runner.runUntilDone()
  return content.map((block) => (block.type === 'text' ? block.text : '')).join('')
}

const openaiChat: Loop = async (connection, prompt, run) => {
  const { completions } = openAiClient(connection).chat
  const request = {
    model: connection.model,
    messages: [{ role: 'user' as const, content: prompt }],
    tools: [
      {
        type: 'function' as const,
        function: {
          name: 'weather',
          description,
          parameters,
          parse: (text: string) => schema.parse(JSON.parse(text)),
          function: ({ city }: { city: string }) => run(city),
        },
      },
    ],
  }
  const runner = connection.isStreamed
    ? completions.runTools({ ...request, stream: true })
    : completions.runTools(request)
  return (await runner.finalContent()) ?? ''
}

const openaiResponses: Loop = async (connection, prompt, run) => {
  const runner = new ResponsesToolRunner({
    functions: [
      {
        tool: { type: 'function', name: 'weather', description, parameters, strict: true },
        execute: (input) => run(schema.parse(input).city),
      },
    ],
  })
  const request = { model: connection.model, input: prompt, store: false }
  const options = { stream: connection.isStreamed }
  const response = await runner.run(openAiClient(connection), request, options)
  return response.output_text
}

const aiSdk =
  (caller: 'ai_anthropic' | 'ai_responses' | 'ai_chat'): Loop =>
  async (connection, prompt, run) => {
    const request = {
      ...aiModel(caller, connection),
      prompt,
      maxRetries: 0,
      stopWhen: isStepCount(3),
      tools: {
        weather: tool({ description, inputSchema: schema, execute: ({ city }) => run(city) }),
      },
    }
    return connection.isStreamed
      ? await streamText(request).text
      : (await generateText(request)).text
  }

export const toolLoops: Record<CallerId, Loop> = {
  anthropic,
  openai_responses: openaiResponses,
  openai_chat: openaiChat,
  ai_anthropic: aiSdk('ai_anthropic'),
  ai_responses: aiSdk('ai_responses'),
  ai_chat: aiSdk('ai_chat'),
}
