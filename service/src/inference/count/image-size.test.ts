import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { readImageSize } from './image-size.ts'

const base64 = (...parts: (string | number[] | Buffer)[]) =>
  Buffer.concat(
    parts.map((part) =>
      typeof part === 'string' ? Buffer.from(part, 'latin1') : Buffer.from(part),
    ),
  ).toString('base64')

const big = (value: number, bytes: number) => {
  const buffer = Buffer.alloc(bytes)
  buffer.writeUIntBE(value, 0, bytes)
  return buffer
}
const little = (value: number, bytes: number) => Buffer.from(big(value, bytes)).reverse()
const zeros = (length: number) => Buffer.alloc(length)

const png = (width: number, height: number) =>
  base64('\x89PNG\r\n\x1a\n', big(13, 4), 'IHDR', big(width, 4), big(height, 4), zeros(20))
const gif = (width: number, height: number) =>
  base64('GIF89a', little(width, 2), little(height, 2), zeros(20))
const segment = (marker: number, payload: Buffer) =>
  Buffer.concat([Buffer.from([0xff, marker]), big(payload.length + 2, 2), payload])
const frame = (marker: number, width: number, height: number) =>
  segment(marker, Buffer.concat([Buffer.from([8]), big(height, 2), big(width, 2), zeros(10)]))
const riff = (kind: string, ...parts: Buffer[]) =>
  base64('RIFF', zeros(4), 'WEBP', kind, zeros(4), Buffer.concat(parts), zeros(20))

describe('the size of an image', () => {
  test('is read from PNG and GIF', () => {
    expect(readImageSize(png(1500, 750))).toEqual({ width: 1500, height: 750 })
    expect(readImageSize(gif(320, 200))).toEqual({ width: 320, height: 200 })
  })

  test('is read from JPEG, also after a preview of 60 KB and with padded markers', () => {
    const start = [0xff, 0xd8]
    const preview = segment(0xe1, zeros(60_000))
    const tables = segment(0xc4, zeros(300))
    expect(readImageSize(base64(start, frame(0xc0, 640, 480)))).toEqual({ width: 640, height: 480 })
    const later = base64(start, preview, tables, [0xff, 0xff], frame(0xc2, 640, 480))
    expect(readImageSize(later)).toEqual({ width: 640, height: 480 })
  })

  test('is read from all three kinds of WebP', () => {
    const lossy = riff('VP8 ', zeros(6), little(800, 2), little(600, 2))
    const lossless = riff('VP8L', Buffer.from([0x2f]), little(799 + 599 * 2 ** 14, 4))
    const extended = riff('VP8X', zeros(4), little(799, 3), little(599, 3))
    for (const image of [lossy, lossless, extended]) {
      expect(readImageSize(image)).toEqual({ width: 800, height: 600 })
    }
  })

  test('is unknown for other formats, invalid data and truncated images', () => {
    const endless = base64(
      [0xff, 0xd8],
      ...Array.from({ length: 500 }, () => segment(0xe0, zeros(1))),
    )
    const strange = ['', 'AAAA', 'not base64 at all', base64('RIFF', zeros(60)), endless]
    const impossible = [png(0, 10), png(4_000_000_000, 4_000_000_000), base64([0xff, 0xd8, 0xff])]
    for (const image of [...strange, ...impossible, png(10, 10).slice(0, 20)]) {
      expect(readImageSize(image)).toBeNull()
    }
  })

  test('is read without an error from arbitrary bytes', () => {
    const starts = [
      '',
      '\x89PNG\r\n\x1a\n',
      'GIF89a',
      'RIFF0000WEBPVP8 ',
      'RIFF0000WEBPVP8X',
      '\xff\xd8',
    ]
    fc.assert(
      fc.property(fc.constantFrom(...starts), fc.uint8Array({ maxLength: 80 }), (start, rest) => {
        const size = readImageSize(base64(start, Buffer.from(rest)))
        expect(size === null || (size.width > 0 && size.height > 0)).toBe(true)
      }),
    )
  })
})
