import type { createChatCompletion } from '../chat-completion.ts'
import type { countTokens } from '../count-tokens.ts'
import type { createMessage } from '../message.ts'
import type { createResponse } from '../response.ts'
import { type ExampleOf, morning } from './example.ts'

const model = 'example-large'
const question = 'What is the capital of France?'
const reply = 'Paris.'

/** 14 input tokens at 3 and 4 output tokens at 15 US dollars per million: 102 micro-dollars. */
const receipt = {
  remaining_credits: 37_654_322,
  estimated_credits_used: 102,
  estimated_cost_usd: 0.000102,
}
const messages = [{ role: 'user' as const, content: question }]

export const inferenceExamples = {
  createMessage: {
    body: { model, max_tokens: 200, messages },
    answer: {
      id: 'msg_06f8q3k2r5s7t9v1w3x5y7h8',
      type: 'message',
      role: 'assistant',
      model,
      content: [{ type: 'text', text: reply }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: {
        input_tokens: 14,
        output_tokens: 4,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 0,
      },
      ...receipt,
    },
  } satisfies ExampleOf<typeof createMessage>,
  countTokens: {
    body: { model, messages },
    answer: { input_tokens: 14 },
  } satisfies ExampleOf<typeof countTokens>,
  createResponse: {
    body: { model, input: question, max_output_tokens: 200 },
    answer: {
      id: 'resp_06f8q3k2r5s7t9v1w3x5y7j9',
      object: 'response',
      status: 'completed',
      model,
      created_at: morning,
      output: [
        {
          id: 'msg_06f8q3k2r5s7t9v1w3x5y7k0',
          type: 'message',
          status: 'completed',
          role: 'assistant',
          content: [{ type: 'output_text', text: reply, annotations: [] }],
        },
      ],
      usage: { input_tokens: 14, output_tokens: 4, total_tokens: 18 },
      ...receipt,
    },
  } satisfies ExampleOf<typeof createResponse>,
  createChatCompletion: {
    body: { model, messages, max_completion_tokens: 200 },
    answer: {
      id: 'chatcmpl-06f8q3k2r5s7t9v1w3x5y7m1',
      object: 'chat.completion',
      created: morning,
      model,
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: reply, refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: { prompt_tokens: 14, completion_tokens: 4, total_tokens: 18 },
      ...receipt,
    },
  } satisfies ExampleOf<typeof createChatCompletion>,
}
