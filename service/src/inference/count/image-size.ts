export type ImageSize = { width: number; height: number }

/**
 * The size that the header of an image in base64 tells, without decoding more of it than that. Null when
 * it is no PNG, JPEG, GIF or WebP, or tells none that makes sense.
 */
export function readImageSize(base64: string): ImageSize | null {
  const head = bytesAt(base64, 0, 32)
  const reader = readers.find(({ begins }) => head.toString('latin1').startsWith(begins))
  const size = reader?.read(head, base64) ?? null
  return size && isSensible(size.width) && isSensible(size.height) ? size : null
}

const isSensible = (pixels: number) => pixels >= 1 && pixels <= 65_535

/** Some bytes out of the middle; fewer where the data ends. */
function bytesAt(base64: string, offset: number, length: number): Buffer {
  const start = Math.floor(offset / 3)
  const end = Math.ceil((offset + length) / 3)
  const decoded = Buffer.from(base64.slice(start * 4, end * 4), 'base64')
  return decoded.subarray(offset - start * 3, offset - start * 3 + length)
}

type Reader = { begins: string; read(head: Buffer, base64: string): ImageSize | null }

const readers: readonly Reader[] = [
  { begins: '\x89PNG\r\n\x1a\n', read: readPng },
  { begins: 'GIF8', read: readGif },
  { begins: 'RIFF', read: readWebp },
  { begins: '\xff\xd8', read: readJpeg },
]

function readPng(head: Buffer): ImageSize | null {
  if (head.length < 24) return null
  return { width: head.readUInt32BE(16), height: head.readUInt32BE(20) }
}

function readGif(head: Buffer): ImageSize | null {
  if (head.length < 10) return null
  return { width: head.readUInt16LE(6), height: head.readUInt16LE(8) }
}

/** Three kinds: lossy, lossless, and extended, which tells the size of its canvas. */
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

/** Photographs carry previews and profiles in front of their size; no honest one carries more parts. */
const jpegSegmentsMax = 200
/** Start of frame, in its variants; between them stand three markers of other meaning. */
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
