import type { CallerFormat, UpstreamFormat } from '#formats/format.ts'
import { vendorHeaders } from '#formats/forwarded-headers.ts'
import { serverSentEvents } from '#formats/sse.ts'
import { createMessageTextReader } from '#formats/texts/message-texts.ts'

import { foldMessageStream } from './fold-message-stream.ts'
import { forwardMessageRequest } from './forward-message-request.ts'
import { readMessageError } from './message-error.ts'
import { usageInMessageFrame } from './message-usage.ts'
import { createMessagePassThrough } from './pass-message-stream.ts'
import { readPlainMessage, settlePlainMessage } from './plain-message.ts'
import { createMessageReader } from './read-message-stream.ts'
import { readMessageTurn } from './read-message-turn.ts'
import { writeMessageRequest } from './write-message-request.ts'
import { createMessageWriter } from './write-message-stream.ts'

const name = 'messages'

/** Anthropic's Messages. */
export const messageCallerFormat: CallerFormat = {
  name,
  errorDialect: 'messages',
  forwardedHeaders: vendorHeaders,
  readTurn: readMessageTurn,
  createWriter: createMessageWriter,
  createPassThrough: createMessagePassThrough,
  ping: 'event: ping\ndata: {"type": "ping"}\n\n',
  fold: foldMessageStream,
  settlePlain: settlePlainMessage,
}

export const messageUpstreamFormat = {
  name,
  pathOf: () => '/messages',
  authorize: (secret) => ({ 'x-api-key': secret }),
  headers: { 'anthropic-version': '2023-06-01' },
  writeRequest: writeMessageRequest,
  forwardRequest: forwardMessageRequest,
  framing: serverSentEvents,
  createReader: createMessageReader,
  readPlain: readPlainMessage,
  createTextReader: createMessageTextReader,
  usageIn: usageInMessageFrame,
  readError: readMessageError,
} satisfies UpstreamFormat
