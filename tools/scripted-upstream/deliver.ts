import type { ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'

import type { Line } from './line.ts'
import type { Script } from './script.ts'
import type { Step } from './stream-steps.ts'

type Head = { status: number; headers: Record<string, string> }
type Way = { response: ServerResponse; line: Line; script: Script }

/** Writes a stream as planned. */
export async function deliverStream({ response, line, script }: Way, head: Head, steps: Step[]) {
  await line.pause(script.headMs ?? 0)
  if (line.isGone()) return
  response.writeHead(head.status, { ...head.headers, 'content-type': 'text/event-stream' })
  if (script.firstMs !== undefined) response.flushHeaders()
  await line.pause(script.firstMs ?? 0)
  for (const step of steps) {
    if (line.isGone()) return
    if ('waitMs' in step) await line.pause(step.waitMs)
    else if ('destroy' in step) return await line.destroy()
    else if (script.splitBytes) await writeSplit(line, Buffer.from(step.write), script.splitBytes)
    else await line.write(step.write)
    if ('write' in step && step.isPiece) line.pieces++
  }
  response.end()
}

/** Node joins what is written in one turn of its loop: only a turn between keeps the parts apart. */
async function writeSplit(line: Line, bytes: Buffer, size: number) {
  for (let at = 0; at < bytes.length && !line.isGone(); at += size) {
    await line.write(bytes.subarray(at, at + size))
    await setImmediate()
  }
}

/** Writes a JSON answer; `pieces` is how many its stream would have, for the time it takes. */
export async function deliverPlain(way: Way, head: Head, text: string, pieces = 0) {
  const { response, line, script } = way
  const { closeAfter, stallAfter, malformedAfter, splitBytes } = script
  const paceMs = (script.paceMs ?? 0) * Math.max(0, pieces - 1)
  await line.pause((script.headMs ?? 0) + paceMs)
  if (line.isGone()) return
  const bytes = Buffer.from(text)
  const half = bytes.subarray(0, bytes.length >> 1)
  const body = malformedAfter ? half : bytes
  response.writeHead(head.status, {
    ...head.headers,
    'content-type': 'application/json',
    // Without a length every part travels in a chunk of its own.
    ...(splitBytes === undefined && { 'content-length': body.length }),
  })
  if (script.firstMs !== undefined) {
    response.flushHeaders()
    await line.pause(script.firstMs)
  }
  if (closeAfter || stallAfter) await line.write(half)
  if (closeAfter) return line.destroy()
  await line.pause(stallAfter?.ms ?? 0)
  const rest = stallAfter ? body.subarray(half.length) : body
  if (splitBytes === undefined) return void response.end(rest)
  await writeSplit(line, rest, splitBytes)
  response.end()
}
