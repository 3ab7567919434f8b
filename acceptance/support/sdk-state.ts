import { createOpenAI } from '@ai-sdk/openai'
import Anthropic from '@anthropic-ai/sdk'
import { generateText, type ModelMessage } from 'ai'

import { type Connection, mostTokens } from './sdk-caller.ts'
import { openAiClient } from './sdk-openai-responses.ts'

// What clients offer for conversations that the provider keeps: each tries to go on with one.

/** A message thread, with which the client goes on without the provider when it is told to. */
export async function continueThread({ baseUrl, key, model }: Connection, isPatient: boolean) {
  const client = new Anthropic({ baseURL: baseUrl, apiKey: key, maxRetries: 0 })
  const thread = client.beta.messages.thread({
    ...{ model, max_tokens: mostTokens },
    ...(isPatient && { unsupportedRequestBehavior: 'continue_unthreaded' }),
  })
  await thread.send({ role: 'user', content: 'Hello' })
  await thread.send({ role: 'user', content: 'And?' })
  return thread.messages.length
}

export const continueResponse = (connection: Connection) =>
  openAiClient(connection).responses.create({
    ...{ model: connection.model, input: 'And?', previous_response_id: 'resp_earlier' },
  })

/** By default this client sends only the ids of what it was answered. */
export async function continueStoredItems({ baseUrl, key, model }: Connection) {
  const provider = createOpenAI({ baseURL: `${baseUrl}/v1`, apiKey: key })
  const request = { model: provider.responses(model), maxRetries: 0 }
  const messages: ModelMessage[] = [{ role: 'user', content: 'Hello' }]
  const { responseMessages } = await generateText({ ...request, messages })
  messages.push(...responseMessages, { role: 'user', content: 'And?' })
  return generateText({ ...request, messages })
}
