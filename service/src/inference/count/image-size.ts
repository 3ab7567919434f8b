export type ImageSize = { width: number; height: number }

/**
 * Reads the size from the header of an image in base64, without decoding the rest. Null if it is not a PNG, JPEG,
 * GIF or WebP, or has no plausible size.
 */
export function readImageSize(base64: string): ImageSize | null {
  const head = bytesAt(base64, 0, 32)
  const reader = readers.find(({ signature }) => head.toString('latin1').startsWith(signature))
  const size = reader?.read(head, base64) ?? null
  return size && isPlausible(size.width) && isPlausible(size.height) ? size : null
}

const isPlausible = (pixels: number) => pixels >= 1 && pixels <= 65_535

/** Decodes `length` bytes from `offset`; fewer at the end of the data. */
function bytesAt(base64: string, offset: number, length: number): Buffer {
  const start = Math.floor(offset / 3)
  const end = Math.ceil((offset + length) / 3)
  const decoded = Buffer.from(base64.slice(start * 4, end * 4), 'base64')
  return decoded.subarray(offset - start * 3, offset - start * 3 + length)
}

type Reader = { signature: string; read(head: Buffer, base64: string): ImageSize | null }

const readers: readonly Reader[] = [
  { signature: '\x89PNG\r\n\x1a\n', read: readPng },
  { signature: 'GIF8', read: readGif },
  { signature: 'RIFF', read: readWebp },
  { signature: '\xff\xd8', read: readJpeg },
]

function readPng(head: Buffer): ImageSize | null {
  if (head.length < 24) return null
  return { width: head.readUInt32BE(16), height: head.readUInt32BE(20) }
}

function readGif(head: Buffer): ImageSize | null {
  if (head.length < 10) return null
  return { width: head.readUInt16LE(6), height: head.readUInt16LE(8) }
}

/** There are three kinds of WebP: lossy, lossless, and extended, which has the size of its canvas. */
function readWebp(head: Buffer): ImageSize | null {
  if (head.length < 30 || head.toString('latin1', 8, 12) !== 'WEBP') return null
  switch (head.toString('latin1', 12, 16)) {
    case 'VP8 ':
      return { width: head.readUInt16LE(26) & 0x3fff, height: head.readUInt16LE(28) & 0x3fff }
    case 'VP8L': {
      const bits = head.readUInt32LE(21)
      return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 }
    }
    case 'VP8X':
      return { width: head.readUIntLE(24, 3) + 1, height: head.readUIntLE(27, 3) + 1 }
    default:
      return null
  }
}

/** Photographs have previews and profiles before their size, but never more segments than this. */
const jpegSegmentsMax = 200
/** The markers of a start of frame; three markers in their range mean something else. */
const isFrame = (marker: number) =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc

function readJpeg(_head: Buffer, base64: string): ImageSize | null {
  let offset = 2
  for (let segment = 0; segment < jpegSegmentsMax; segment++) {
    const bytes = bytesAt(base64, offset, 9)
    if (bytes.length < 9 || bytes[0] !== 0xff) return null
    const marker = bytes.readUInt8(1)
    if (isFrame(marker)) return { height: bytes.readUInt16BE(5), width: bytes.readUInt16BE(7) }
    // A marker may be padded with further 0xff.
    offset += marker === 0xff ? 1 : 2 + bytes.readUInt16BE(2)
  }
  return null
}
