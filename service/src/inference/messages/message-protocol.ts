import type { Protocol } from '#inference/protocol.ts'

import { foldMessageStream } from './fold-message-stream.ts'
import { forwardMessageRequest } from './forward-message-request.ts'
import { readMessageError } from './message-error.ts'
import { createMessagePassThrough } from './pass-message-stream.ts'
import { createMessageReader } from './read-message-stream.ts'
import { readMessageTurn } from './read-message-turn.ts'
import { writeMessageRequest } from './write-message-request.ts'
import { createMessageWriter } from './write-message-stream.ts'

/** Messages, as Anthropic's API has them (wire formats, card A). */
export const messages: Protocol = {
  name: 'messages',
  readTurn: readMessageTurn,
  createWriter: createMessageWriter,
  createPassThrough: createMessagePassThrough,
  ping: 'event: ping\ndata: {"type": "ping"}\n\n',
  fold: foldMessageStream,
  path: '/messages',
  headers: { 'anthropic-version': '2023-06-01' },
  errorDialect: 'messages',
  writeRequest: writeMessageRequest,
  forwardRequest: forwardMessageRequest,
  createReader: createMessageReader,
  readError: readMessageError,
}
