import { bearerToken } from '#formats/bearer-token.ts'
import type { CallerFormat, UpstreamFormat } from '#formats/format.ts'
import { vendorHeaders } from '#formats/forwarded-headers.ts'
import { serverSentEvents } from '#formats/sse.ts'
import { createChatTextReader } from '#formats/texts/chat-texts.ts'

import { readChatError } from './chat-error.ts'
import { hasMediaInChunk, usageInChunk } from './chat-usage.ts'
import { foldChatStream } from './fold-chat-stream.ts'
import { forwardChatRequest } from './forward-chat-request.ts'
import { createChatPassThrough } from './pass-chat-stream.ts'
import { readPlainChat, settlePlainChat } from './plain-chat.ts'
import { createChatReader } from './read-chat-stream.ts'
import { readChatTurn } from './read-chat-turn.ts'
import { toolCallIndex } from './tool-call-index.ts'
import { writeChatRequest } from './write-chat-request.ts'
import { createChatWriter } from './write-chat-stream.ts'

const name = 'chat_completions'

/** OpenAI's Chat Completions. */
export const chatCallerFormat: CallerFormat = {
  name,
  errorDialect: 'openai',
  forwardedHeaders: vendorHeaders,
  readTurn: readChatTurn,
  createWriter: createChatWriter,
  createPassThrough: createChatPassThrough,
  // A comment: this format has no event for it.
  ping: ': ping\n\n',
  fold: foldChatStream,
  settlePlain: settlePlainChat,
}

export const chatUpstreamFormat = {
  name,
  pathOf: () => '/chat/completions',
  authorize: bearerToken,
  headers: {},
  writeRequest: writeChatRequest,
  forwardRequest: forwardChatRequest,
  framing: serverSentEvents,
  createReader: createChatReader,
  readPlain: readPlainChat,
  createTextReader: (before) => createChatTextReader(toolCallIndex, before),
  usageIn: usageInChunk,
  hasMedia: hasMediaInChunk,
  readError: readChatError,
} satisfies UpstreamFormat
