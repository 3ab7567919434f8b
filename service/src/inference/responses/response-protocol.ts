import type { Protocol } from '#inference/protocol.ts'

import { fold } from './fold-response-stream.ts'
import { forwardRequest } from './forward-response-request.ts'
import { createPassThrough } from './pass-response-stream.ts'
import { readError } from './provider-failure.ts'
import { createReader } from './read-response-stream.ts'
import { readTurn } from './read-response-turn.ts'
import { writeRequest } from './write-response-request.ts'
import { createWriter } from './write-response-stream.ts'

/** OpenAI's Responses format (card D). */
export const responses: Protocol = {
  name: 'responses',
  readTurn,
  createWriter,
  createPassThrough,
  ping: ': ping\n\n',
  fold,
  path: '/responses',
  headers: {},
  // Our own bodies are flat (G7.8), those of upstreams are not.
  errorDialect: null,
  writeRequest,
  forwardRequest,
  createReader,
  readError,
}
