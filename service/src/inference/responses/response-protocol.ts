import type { Protocol } from '#inference/protocol.ts'

import { foldResponseStream } from './fold-response-stream.ts'
import { forwardResponseRequest } from './forward-response-request.ts'
import { createResponsePassThrough } from './pass-response-stream.ts'
import { createResponseReader } from './read-response-stream.ts'
import { readResponseTurn } from './read-response-turn.ts'
import { readResponseError } from './response-error.ts'
import { writeResponseRequest } from './write-response-request.ts'
import { createResponseWriter } from './write-response-stream.ts'

/** OpenAI's Responses format (card D). */
export const responses: Protocol = {
  name: 'responses',
  readTurn: readResponseTurn,
  createWriter: createResponseWriter,
  createPassThrough: createResponsePassThrough,
  ping: ': ping\n\n',
  fold: foldResponseStream,
  path: '/responses',
  headers: {},
  // Our own bodies are flat (G7.8), those of upstreams are not.
  errorDialect: null,
  writeRequest: writeResponseRequest,
  forwardRequest: forwardResponseRequest,
  createReader: createResponseReader,
  readError: readResponseError,
}
