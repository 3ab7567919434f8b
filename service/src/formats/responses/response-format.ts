import { bearerToken } from '#formats/bearer-token.ts'
import type { CallerFormat, UpstreamFormat } from '#formats/format.ts'
import { vendorHeaders } from '#formats/forwarded-headers.ts'
import { serverSentEvents } from '#formats/sse.ts'
import { createResponseTextReader } from '#formats/texts/response-texts.ts'

import { forwardResponseRequest } from './forward-response-request.ts'
import { createResponsePassThrough } from './pass-response-stream.ts'
import { foldResponseStream, readPlainResponse, settlePlainResponse } from './plain-response.ts'
import { createResponseReader } from './read-response-stream.ts'
import { readResponseTurn } from './read-response-turn.ts'
import { readResponseError } from './response-error.ts'
import { hasMediaInResponseFrame, usageInResponseFrame } from './response-usage.ts'
import { writeResponseRequest } from './write-response-request.ts'
import { createResponseWriter } from './write-response-stream.ts'

const name = 'responses'

/** OpenAI's Responses. */
export const responseCallerFormat: CallerFormat = {
  name,
  errorDialect: 'responses',
  forwardedHeaders: vendorHeaders,
  readTurn: readResponseTurn,
  createWriter: createResponseWriter,
  createPassThrough: createResponsePassThrough,
  ping: ': ping\n\n',
  fold: foldResponseStream,
  settlePlain: settlePlainResponse,
}

export const responseUpstreamFormat = {
  name,
  pathOf: () => '/responses',
  authorize: bearerToken,
  headers: {},
  writeRequest: writeResponseRequest,
  forwardRequest: forwardResponseRequest,
  framing: serverSentEvents,
  createReader: createResponseReader,
  readPlain: readPlainResponse,
  createTextReader: createResponseTextReader,
  usageIn: usageInResponseFrame,
  hasMedia: hasMediaInResponseFrame,
  readError: readResponseError,
  // The error bodies of Gatehouse are flat here, those of upstreams are not.
} satisfies UpstreamFormat
