import type { CallerId } from '@gatehouse/tools/compatibility'

type StopReasons = { end: string; length: string; stop: string; call: string; refusal: string }

const aiSdk: StopReasons = {
  end: 'stop',
  length: 'length',
  stop: 'stop',
  call: 'tool-calls',
  refusal: 'content-filter',
}

/** The values by which each client reports why an answer ended. */
export const stopReasons: Record<CallerId, StopReasons> = {
  anthropic: {
    end: 'end_turn',
    length: 'max_tokens',
    stop: 'stop_sequence',
    call: 'tool_use',
    refusal: 'refusal',
  },
  openai_responses: {
    end: 'completed',
    length: 'max_output_tokens',
    stop: 'completed',
    call: 'completed',
    refusal: 'content_filter',
  },
  openai_chat: {
    end: 'stop',
    length: 'length',
    stop: 'stop',
    call: 'tool_calls',
    refusal: 'content_filter',
  },
  ai_anthropic: aiSdk,
  ai_responses: aiSdk,
  ai_chat: aiSdk,
}
