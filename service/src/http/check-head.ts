import type { IncomingMessage } from 'node:http'

import { ApiError } from '#platform/api-error.ts'

export const urlMaxBytes = 8 * 1024

const onlyOnce = ['host', 'content-length', 'content-type', 'authorization', 'x-api-key']
/** Indexed by length. All five lengths differ, so most headers are ruled out without comparing strings. */
const onlyOnceByLength = new Map(
  onlyOnce.map((name, index) => [name.length, { name, bit: 1 << index }]),
)

/** Refuses headers that were sent twice: Node reads the first of them, a proxy may read the last. */
export function checkHead(raw: IncomingMessage) {
  const { rawHeaders } = raw
  let seen = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const sent = rawHeaders[index] ?? ''
    const header = onlyOnceByLength.get(sent.length)
    if (!header || (sent !== header.name && sent.toLowerCase() !== header.name)) continue
    if (seen & header.bit) {
      throw new ApiError(
        'invalid_request',
        `The header '${header.name}' was sent more than once; send it once.`,
      )
    }
    seen |= header.bit
  }
  if (raw.httpVersionMajor < 1) {
    throw new ApiError('invalid_request', 'HTTP/0.9 is not supported; use HTTP/1.1.')
  }
  // Node decodes only the chunks, so the body would arrive still encoded in the other coding.
  const coding = raw.headers['transfer-encoding']?.trim().toLowerCase() ?? 'chunked'
  if (coding !== 'chunked') {
    throw new ApiError('invalid_request', "The only supported Transfer-Encoding is 'chunked'.")
  }
  if (raw.httpVersion === '1.1' && raw.headers.host === undefined) {
    throw new ApiError('invalid_request', "The header 'host' is missing; HTTP/1.1 requires it.")
  }
  if ((raw.url?.length ?? 0) > urlMaxBytes) {
    throw new ApiError('url_too_long', 'The URL is longer than 8 KiB.')
  }
}
