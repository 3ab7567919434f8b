import { BrokenAnswer } from '#formats/broken-answer.ts'
import type { Framing, RawFrame } from '#formats/framing.ts'

const lineFeed = 0x0a

/** One JSON object per line. */
export const jsonLines: Framing = {
  mediaType: 'application/x-ndjson',
  createParser({ frameMaxBytes }) {
    let rest = Buffer.alloc(0)
    return {
      feed(chunk) {
        rest = Buffer.concat([rest, chunk])
        const frames: RawFrame[] = []
        for (let end = rest.indexOf(lineFeed); end !== -1; end = rest.indexOf(lineFeed)) {
          frames.push(toFrame(rest.subarray(0, end + 1)))
          rest = rest.subarray(end + 1)
        }
        if (rest.length > frameMaxBytes) throw new BrokenAnswer('A line is too long.')
        return frames
      },
      end: () => (rest.length > 0 ? [toFrame(rest)] : []),
    }
  },
}

const toFrame = (bytes: Buffer): RawFrame => ({ event: '', data: bytes.toString().trim(), bytes })
