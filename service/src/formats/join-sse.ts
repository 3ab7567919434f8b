import type { OutFrame } from './answer.ts'
import { toSse } from './sse.ts'

/**
 * The bytes of frames that are sent together. Unchanged frames that stand one after the other in the upstream's bytes are
 * sent as they stand there, without a copy.
 */
export function joinSse(frames: readonly OutFrame[]): Buffer | string {
  const [only] = frames
  if (only && frames.length === 1) return toSse(only)
  const runs: Buffer[] = []
  let first: Buffer | undefined
  let length = 0
  for (const frame of frames) {
    const text = toSse(frame)
    const bytes = typeof text === 'string' ? Buffer.from(text) : text
    if (first && isNext(first, length, bytes)) {
      length += bytes.length
      continue
    }
    if (first) runs.push(toRun(first, length))
    first = bytes
    length = bytes.length
  }
  if (first) runs.push(toRun(first, length))
  const [run = ''] = runs
  return runs.length <= 1 ? run : Buffer.concat(runs)
}

/** Whether `bytes` follow the `length` bytes that begin with `first`. */
const isNext = (first: Buffer, length: number, bytes: Buffer): boolean =>
  bytes.byteOffset === first.byteOffset + length && bytes.buffer === first.buffer

const toRun = (first: Buffer, length: number): Buffer =>
  first.length === length ? first : Buffer.from(first.buffer, first.byteOffset, length)
