import { createOpenAI } from '@ai-sdk/openai'
import Anthropic from '@anthropic-ai/sdk'
import { generateText, type ModelMessage } from 'ai'

import { type Connection, mostTokens } from './caller.ts'
import { openAiClient } from './openai-responses.ts'

// What clients offer for conversations stored by the provider: each function tries to continue one.

/** A message thread. With `canFallBack`, the client continues without it if the provider does not support it. */
export async function continueThread({ baseUrl, key, model }: Connection, canFallBack: boolean) {
  const client = new Anthropic({ baseURL: baseUrl, apiKey: key, maxRetries: 0 })
  const thread = client.beta.messages.thread({
    model,
    max_tokens: mostTokens,
    ...(canFallBack && { unsupportedRequestBehavior: 'continue_unthreaded' }),
  })
  await thread.send({ role: 'user', content: 'Hello' })
  await thread.send({ role: 'user', content: 'And?' })
  return thread.messages.length
}

export const continueResponse = (connection: Connection) =>
  openAiClient(connection).responses.create({
    model: connection.model,
    input: 'And?',
    previous_response_id: 'resp_earlier',
  })

/** By default this client sends only the ids of the items of earlier answers. */
export async function continueStoredItems({ baseUrl, key, model }: Connection) {
  const provider = createOpenAI({ baseURL: `${baseUrl}/v1`, apiKey: key })
  const request = { model: provider.responses(model), maxRetries: 0 }
  const messages: ModelMessage[] = [{ role: 'user', content: 'Hello' }]
  const { responseMessages } = await generateText({ ...request, messages })
  messages.push(...responseMessages, { role: 'user', content: 'And?' })
  return generateText({ ...request, messages })
}
