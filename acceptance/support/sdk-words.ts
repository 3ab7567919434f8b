import type { CallerId } from '@gatehouse/tools/compatibility'

type EndWords = { end: string; length: string; stop: string; call: string; refusal: string }

const aiSdk: EndWords = {
  ...{ end: 'stop', length: 'length', stop: 'stop' },
  ...{ call: 'tool-calls', refusal: 'content-filter' },
}

/** How each client says why an answer ended. */
export const endWords: Record<CallerId, EndWords> = {
  anthropic: {
    ...{ end: 'end_turn', length: 'max_tokens', stop: 'stop_sequence' },
    ...{ call: 'tool_use', refusal: 'refusal' },
  },
  openai_responses: {
    ...{ end: 'completed', length: 'max_output_tokens', stop: 'completed' },
    ...{ call: 'completed', refusal: 'content_filter' },
  },
  openai_chat: {
    ...{ end: 'stop', length: 'length', stop: 'stop' },
    ...{ call: 'tool_calls', refusal: 'content_filter' },
  },
  ai_anthropic: aiSdk,
  ai_responses: aiSdk,
  ai_chat: aiSdk,
}
