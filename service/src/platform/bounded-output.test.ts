import { Writable } from 'node:stream'

import { expect, test } from 'vitest'

import {
  createBoundedOutput,
  createGatheringStream,
  endOfPiece,
  untilWritten,
} from './bounded-output.ts'

/** A stream whose reader reads only when it is told to. */
function createStalledStream() {
  const waiting: (() => void)[] = []
  const written: string[] = []
  const stream = new Writable({
    write(chunk: Buffer, _, done) {
      waiting.push(() => {
        written.push(chunk.toString())
        done()
      })
    },
  })
  const readAll = async () => {
    while (waiting.length > 0) {
      waiting.shift()?.()
      await new Promise(setImmediate)
    }
  }
  return { stream, written, readAll }
}

test('lines beyond the buffer are dropped, and counted in the next line that fits', async () => {
  const { stream, written, readAll } = createStalledStream()
  let dropped = 0
  const output = createBoundedOutput(stream, { maxBytes: 100, onDropped: (n) => (dropped += n) })
  for (let index = 0; index < 50; index++) output.write(`line ${String(index).padStart(4, '0')}\n`)
  await readAll()
  output.write('after\n')
  await readAll()
  expect(written.slice(0, 10)).toEqual(
    Array.from({ length: 10 }, (_, index) => `line 000${index}\n`),
  )
  expect(JSON.parse(written[10]!)).toMatchObject({ event: 'log_lines_dropped', lines: 40 })
  expect(written.slice(11)).toEqual(['after\n'])
  expect(dropped).toBe(40)
})

test('a stream that has failed drops every line', async () => {
  const { stream } = createStalledStream()
  let dropped = 0
  const output = createBoundedOutput(stream, { onDropped: (n) => (dropped += n) })
  stream.destroy(new Error('EPIPE'))
  await new Promise(setImmediate)
  output.write('a\n')
  output.write('b\n')
  await untilWritten(stream, 60_000)
  await new Promise(setImmediate)
  expect(dropped).toBe(2)
})

test('after lines that could not be written, later ones are written again', async () => {
  const written: string[] = []
  let isFull = true
  const stream = new Writable({
    autoDestroy: false,
    write(chunk: Buffer, _, done) {
      if (!isFull) written.push(chunk.toString())
      done(isFull ? new Error('ENOSPC') : null)
    },
  })
  let dropped = 0
  const output = createBoundedOutput(stream, { onDropped: (n) => (dropped += n) })
  output.write('lost\n')
  await new Promise(setImmediate)
  expect(dropped).toBe(1)
  isFull = false
  // As Node does for standard output.
  ;(stream as unknown as { _undestroy(): void })._undestroy()
  output.write('kept\n')
  await new Promise(setImmediate)
  expect(JSON.parse(written[0]!)).toMatchObject({ event: 'log_lines_dropped', lines: 1 })
  expect(written[1]).toBe('kept\n')
})

test('untilWritten waits for the reader, and not longer than it is told', async () => {
  const { stream, readAll } = createStalledStream()
  const output = createBoundedOutput(stream)
  output.write('a\n')
  await untilWritten(stream, 20)
  expect(stream.writableLength).toBe(2)
  const written = untilWritten(stream, 60_000)
  await readAll()
  await written
  expect(stream.writableLength).toBe(0)
})

test('lines of a few milliseconds are one write, and there is one write at a time', async () => {
  const writes: { text: string; done: (error?: Error | null) => void }[] = []
  const stream = createGatheringStream((text, done) => writes.push({ text, done }))
  const ended: string[] = []
  const send = (line: string) =>
    stream.write(line, (error) => ended.push(`${line}${error ? ' lost' : ''}`))
  send('a')
  send('b')
  expect(stream.writableLength).toBe(2)
  await expect.poll(() => writes.length).toBe(1)
  expect(writes[0]?.text).toBe('ab')
  send('c')
  expect(stream.writableLength).toBe(3)
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(writes.length).toBe(1)
  writes[0]?.done()
  expect(ended).toEqual(['a', 'b'])
  await expect.poll(() => writes.length).toBe(2)
  writes[1]?.done(new Error('ENOSPC'))
  expect(ended).toEqual(['a', 'b', 'c lost'])
  expect(stream.writableLength).toBe(0)
})

test.each([
  ['lines that fit', `${'a'.repeat(99)}\n`.repeat(40), 4000],
  ['more lines than fit', `${'a'.repeat(99)}\n`.repeat(50), 4000],
  ['exactly as much as fits', `${'a'.repeat(4095)}\nb\n`, 4096],
  ['characters of three bytes', `${'€'.repeat(33)}\n`.repeat(50), 34 * 40],
  ['a line that is too long', `${'a'.repeat(9000)}\nb\n`, 9001],
  ['a long line of three bytes each', `${'€'.repeat(2000)}\nb\n`, 2001],
  ['a line without an end', 'a'.repeat(9000), 9000],
])('a piece for a pipe is whole lines: %s', (_, text, end) => {
  expect(endOfPiece(text)).toBe(end)
})
