import { execFileSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'

const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))

/** The CPU time that these processes have used so far, in microseconds, including all threads. */
export async function cpuMicroseconds(pids: readonly number[]): Promise<number> {
  const times = await Promise.all(pids.map(ticksOf))
  return (times.reduce((sum, ticks) => sum + ticks, 0) * 1e6) / ticksPerSecond
}

async function ticksOf(pid: number): Promise<number> {
  const line = await readFile(`/proc/${pid}/stat`, 'utf8')
  // The name in brackets may contain any character, so fields are counted after it; user time is the twelfth.
  const numbers = line.slice(line.lastIndexOf(')') + 2).split(' ')
  return Number(numbers[11]) + Number(numbers[12])
}

/** The resident memory of these processes, in megabytes. */
export async function memoryMegabytes(pids: readonly number[]): Promise<number> {
  const sizes = await Promise.all(pids.map(residentKilobytes))
  return sizes.reduce((sum, size) => sum + size, 0) / 1024
}

async function residentKilobytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1])
}

/** Keeps processes, with all their threads, on one core. */
export function pin(pids: readonly number[], core: number) {
  for (const pid of pids) execFileSync('taskset', ['-acp', String(core), String(pid)])
}
