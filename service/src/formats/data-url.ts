import { isUtf8 } from 'node:buffer'

/** The longest `data:<media type>;base64` worth looking at; the data itself may be megabytes. */
const headMaxLength = 1000

export const isDataUrl = (url: string) => url.slice(0, 5).toLowerCase() === 'data:'

/** Undefined where the data is not base64; the media type is '' where the URL has none. */
export function readDataUrl(url: string) {
  const comma = url.slice(0, headMaxLength).indexOf(',')
  const [mediaType = '', ...options] = url.slice(5, Math.max(comma, 5)).toLowerCase().split(';')
  if (comma === -1 || !options.includes('base64')) return undefined
  return { type: 'base64' as const, mediaType, data: url.slice(comma + 1) }
}

export const writeDataUrl = ({ mediaType, data }: { mediaType: string; data: string }) =>
  `data:${mediaType};base64,${data}`

/** The text of a file that is called plain text; undefined where it is something else, whatever it is called. */
export function readPlainText({ mediaType, data }: { mediaType: string; data: string }) {
  if (mediaType !== 'text/plain') return undefined
  const bytes = Buffer.from(data, 'base64')
  return isUtf8(bytes) ? { type: 'text' as const, text: bytes.toString() } : undefined
}
