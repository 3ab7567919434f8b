import type { ChildProcess } from 'node:child_process'
import { readdir, readlink } from 'node:fs/promises'

import type { ApiProcess } from '@gatehouse/tools/service-process'

import { residentMegabytes } from './stream-flood.ts'

// What a process of the service holds: memory after a collection of garbage, sockets, open streams.

export type Vitals = {
  heapMegabytes: number
  residentMegabytes: number
  sockets: number
  streamsOpen: number
  requestsInFlight: number
}

/** What a process says on its standard error, from now on. */
export function hearComplaints({ child }: ApiProcess) {
  const heard = { text: '' }
  child.stderr?.on('data', (chunk: Buffer) => (heard.text += chunk.toString()))
  return heard
}
export type Complaints = ReturnType<typeof hearComplaints>

/** A signal makes Node open its debugger, if the process was started with `--inspect-port=0`. */
async function debuggerOf(child: ChildProcess, complaints: Complaints): Promise<string> {
  child.kill('SIGUSR1')
  for (const deadline = Date.now() + 5000; Date.now() < deadline;) {
    const address = complaints.text.match(/Debugger listening on (ws:\S+)/)?.[1]
    if (address) return address
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error('The process did not open its debugger.')
}

/** The heap that is really in use, in megabytes. */
async function collectGarbage(child: ChildProcess, complaints: Complaints): Promise<number> {
  const socket = new WebSocket(await debuggerOf(child, complaints))
  await new Promise((resolve) => socket.addEventListener('open', resolve, { once: true }))
  const ask = (method: string) =>
    new Promise<{ result: { usedSize?: number } }>((resolve) => {
      socket.addEventListener(
        'message',
        ({ data }) => resolve(JSON.parse(String(data)) as { result: { usedSize?: number } }),
        { once: true },
      )
      socket.send(JSON.stringify({ id: 1, method }))
    })
  await ask('HeapProfiler.collectGarbage')
  await ask('HeapProfiler.collectGarbage')
  const { result } = await ask('Runtime.getHeapUsage')
  socket.close()
  return (result.usedSize ?? 0) / 1024 / 1024
}

async function countSockets(processId: number | undefined): Promise<number> {
  const folder = `/proc/${processId}/fd`
  const names = await readdir(folder)
  const targets = await Promise.all(
    names.map((name) => readlink(`${folder}/${name}`).catch(() => '')),
  )
  return targets.filter((target) => target.startsWith('socket:')).length
}

export async function vitalsOf(api: ApiProcess, complaints: Complaints): Promise<Vitals> {
  const heapMegabytes = await collectGarbage(api.child, complaints)
  const metrics = await (await fetch(api.metricsUrl)).text()
  const valueOf = (name: string) => Number(metrics.match(new RegExp(`^${name} (\\d+)$`, 'm'))?.[1])
  return {
    heapMegabytes,
    residentMegabytes: await residentMegabytes(api.child.pid),
    sockets: await countSockets(api.child.pid),
    streamsOpen: valueOf('gatehouse_streams_open'),
    requestsInFlight: valueOf('gatehouse_requests_in_flight'),
  }
}
