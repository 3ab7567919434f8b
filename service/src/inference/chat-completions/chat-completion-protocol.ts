import type { Protocol } from '#inference/protocol.ts'

import { readChatError } from './chat-error.ts'
import { foldChatStream } from './fold-chat-stream.ts'
import { forwardChatRequest } from './forward-chat-request.ts'
import { createChatPassThrough } from './pass-chat-stream.ts'
import { createChatReader } from './read-chat-stream.ts'
import { readChatTurn } from './read-chat-turn.ts'
import { writeChatRequest } from './write-chat-request.ts'
import { createChatWriter } from './write-chat-stream.ts'

/** OpenAI's chat completions (wire formats, card C). The base address of an upstream ends in /v1. */
export const chatCompletions: Protocol = {
  name: 'chat_completions',
  path: '/chat/completions',
  headers: {},
  errorDialect: 'openai',
  // A comment: this format has no event that means nothing (G6.7).
  ping: ': ping\n\n',
  readTurn: readChatTurn,
  writeRequest: writeChatRequest,
  forwardRequest: forwardChatRequest,
  createReader: createChatReader,
  createWriter: createChatWriter,
  createPassThrough: createChatPassThrough,
  fold: foldChatStream,
  readError: readChatError,
}
