import { Agent, request } from 'node:http'

import { path } from '../chat-call.ts'
import { createReleaseCounter, noReleases, readChunk, type Releases } from './releases.ts'

// Opens many streams from a process of its own, holds them open, and counts what arrives.

export type Job = {
  url: string
  headerSets: Record<string, string>[]
  body: string
  streams: number
  /** Streams are opened over this time, so that their frames do not come in the same moment. */
  openingMs: number
}
/** `problem` is the first answer that was not a stream, or that broke off. */
export type Report = {
  started: number
  ended: number
  frames: number
  problem?: string
}

const agent = new Agent({ keepAlive: true, maxSockets: Infinity, maxFreeSockets: 10_000 })
const calls = new Set<ReturnType<typeof request>>()
let report: Report = { started: 0, ended: 0, frames: 0 }
let releases: Releases = noReleases()

/** Each stream gets another number in the place of this one. */
const number = /@number@/g
let numbers = 0

function open({ url, headerSets, body: usual }: Job, index: number) {
  const body = usual.replaceAll(number, String(++numbers))
  const headers = { ...headerSets[index % headerSets.length], 'content-length': body.length }
  const own = report
  const note = createReleaseCounter(releases, performance.now())
  const fail = (problem: string) => (own.problem ??= problem)
  const call = request(url + path, { method: 'POST', agent, headers }, (answer) => {
    if (answer.statusCode !== 200) fail(`an answer has the status ${answer.statusCode}`)
    answer.once('data', () => void own.started++)
    answer.on('data', (chunk: Buffer) => {
      const read = readChunk(chunk.toString('latin1'))
      own.frames += read.frames
      note(performance.now(), read)
    })
    answer.once('end', () => void own.ended++)
  })
  calls.add(call)
  call.once('close', () => calls.delete(call))
  call.once('error', (error) => fail(String(error))).end(body)
}

function begin(job: Job) {
  report = { started: 0, ended: 0, frames: 0 }
  releases = noReleases()
  for (let index = 0; index < job.streams; index++) {
    setTimeout(() => open(job, index), (index / job.streams) * job.openingMs)
  }
}

/** Hangs up on every stream that is open; what that breaks is not reported. */
function end() {
  report = { started: 0, ended: 0, frames: 0 }
  for (const call of calls) call.destroy()
}

process.on('message', (message) => {
  if (message === 'report') return void process.send?.(report)
  if (message === 'releases') return void process.send?.(releases)
  return message === 'end' ? end() : begin(message as Job)
})
process.on('disconnect', () => process.exit(0))
process.send?.('ready')
