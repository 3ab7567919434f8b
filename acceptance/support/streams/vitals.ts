import type { ChildProcess } from 'node:child_process'
import { readdir, readlink } from 'node:fs/promises'

import type { ApiProcess } from '@gatehouse/tools/service-process'

import { residentMegabytes } from './flood.ts'

// The resources that a process of the service holds: memory after garbage collection, sockets, open streams.

export type Vitals = {
  heapMegabytes: number
  residentMegabytes: number
  sockets: number
}

/** Collects what a process writes to its standard error, from now on. */
export function collectStderr({ child }: ApiProcess) {
  const collected = { text: '' }
  child.stderr?.on('data', (chunk: Buffer) => (collected.text += chunk.toString()))
  return collected
}
export type Stderr = ReturnType<typeof collectStderr>

/** SIGUSR1 makes Node open its debugger; `--inspect-port=0` lets it choose a free port. */
async function debuggerOf(child: ChildProcess, stderr: Stderr): Promise<string> {
  child.kill('SIGUSR1')
  for (const deadline = Date.now() + 60_000; Date.now() < deadline;) {
    const address = stderr.text.match(/Debugger listening on (ws:\S+)/)?.[1]
    if (address) return address
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error('The process did not open its debugger.')
}

/** Collects garbage, and returns the heap that is still in use, in megabytes. */
async function collectGarbage(child: ChildProcess, stderr: Stderr): Promise<number> {
  const socket = new WebSocket(await debuggerOf(child, stderr))
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

/** What a process has not finished. */
export async function openIn({ metricsUrl }: ApiProcess) {
  const metrics = await (await fetch(metricsUrl)).text()
  const valueOf = (name: string) => Number(metrics.match(new RegExp(`^${name} (\\d+)$`, 'm'))?.[1])
  return {
    streams: valueOf('gatehouse_streams_open'),
    requests: valueOf('gatehouse_requests_in_flight'),
  }
}

export const vitalsOf = async ({ child }: ApiProcess, stderr: Stderr): Promise<Vitals> => ({
  heapMegabytes: await collectGarbage(child, stderr),
  residentMegabytes: await residentMegabytes(child.pid),
  sockets: await countSockets(child.pid),
})
