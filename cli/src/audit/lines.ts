import { createReadStream } from 'node:fs'
import { pipeline, type Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'

import { Fault } from './fault.ts'

/** `isComplete`: a line break follows. */
export type Line = { number: number; bytes: Buffer; isComplete: boolean }

/** A record has at most a few megabytes; a longer line would only fill the memory. */
const lineBytesMax = 32 * 1024 * 1024
const lineBreak = 0x0a

/** The lines of a file, one at a time; `.gz` is unpacked on the way. */
export async function* readLines(path: string): AsyncGenerator<Line> {
  let number = 0
  let rest: Buffer[] = []
  let restBytes = 0
  try {
    for await (const chunk of open(path) as AsyncIterable<Buffer>) {
      let start = 0
      for (let end; (end = chunk.indexOf(lineBreak, start)) >= 0; start = end + 1) {
        const part = chunk.subarray(start, end)
        const bytes = rest.length === 0 ? part : Buffer.concat([...rest, part])
        rest = []
        restBytes = 0
        yield { number: ++number, bytes, isComplete: true }
      }
      if (start === chunk.length) continue
      rest.push(chunk.subarray(start))
      restBytes += chunk.length - start
      if (restBytes > lineBytesMax)
        throw faultOf(path, number + 1, 'has a line of more than 32 MiB')
    }
  } catch (error) {
    throw isDamage(error)
      ? faultOf(path, number + 1, 'is damaged or cut off: it cannot be unpacked')
      : error
  }
  if (rest.length > 0) yield { number: number + 1, bytes: Buffer.concat(rest), isComplete: false }
}

function open(path: string): Readable {
  const file = createReadStream(path)
  // Errors reach whoever reads the last stream; the callback is only there so that nobody else gets them.
  return path.endsWith('.gz') ? pipeline(file, createGunzip(), () => {}) : file
}

const faultOf = (file: string, line: number, what: string) =>
  new Fault({ kind: 'file', seq: null }, { file, line }, what)

const isDamage = (error: unknown) =>
  error instanceof Error && 'code' in error && /^Z_|^ERR_.*ZLIB/.test(String(error.code))
