import type { ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'

import type { ResponseWriter } from './response-writer.ts'
import type { Script } from './script.ts'
import type { Step } from './stream-steps.ts'

type Head = { status: number; headers: Record<string, string> }
type Way = { response: ServerResponse; writer: ResponseWriter; script: Script }

/** Writes a stream as planned. */
export async function deliverStream({ response, writer, script }: Way, head: Head, steps: Step[]) {
  await writer.pause(script.headMs ?? 0)
  if (writer.isClosed()) return
  response.writeHead(head.status, { ...head.headers, 'content-type': 'text/event-stream' })
  if (script.firstMs !== undefined) response.flushHeaders()
  await writer.pause(script.firstMs ?? 0)
  for (const step of steps) {
    if (writer.isClosed()) return
    if ('waitMs' in step) await writer.pause(step.waitMs)
    else if ('destroy' in step) return await writer.destroy()
    else if (script.splitBytes) await writeSplit(writer, Buffer.from(step.write), script.splitBytes)
    else await writer.write(step.write)
    if ('write' in step && step.isPiece) writer.pieces++
  }
  response.end()
}

/** Node joins writes of the same event loop turn, so this waits for the next turn to keep the parts separate. */
async function writeSplit(writer: ResponseWriter, bytes: Buffer, size: number) {
  for (let at = 0; at < bytes.length && !writer.isClosed(); at += size) {
    await writer.write(bytes.subarray(at, at + size))
    await setImmediate()
  }
}

/** Writes a JSON answer; `pieces` is the number that its stream would have, which determines the delay. */
export async function deliverPlain(way: Way, head: Head, text: string, pieces = 0) {
  const { response, writer, script } = way
  const { closeAfter, stallAfter, malformedAfter, splitBytes } = script
  const paceMs = (script.paceMs ?? 0) * Math.max(0, pieces - 1)
  await writer.pause((script.headMs ?? 0) + paceMs)
  if (writer.isClosed()) return
  const bytes = Buffer.from(text)
  const half = bytes.subarray(0, bytes.length >> 1)
  const body = malformedAfter ? half : bytes
  response.writeHead(head.status, {
    ...head.headers,
    'content-type': 'application/json',
    // Without a length, each part is sent as a chunk of its own.
    ...(splitBytes === undefined && { 'content-length': body.length }),
  })
  if (script.firstMs !== undefined) {
    response.flushHeaders()
    await writer.pause(script.firstMs)
  }
  if (closeAfter || stallAfter) await writer.write(half)
  if (closeAfter) return writer.destroy()
  await writer.pause(stallAfter?.ms ?? 0)
  const rest = stallAfter ? body.subarray(half.length) : body
  if (splitBytes === undefined) return void response.end(rest)
  await writeSplit(writer, rest, splitBytes)
  response.end()
}
