import { execFileSync } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'

export const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))

/**
 * Reads the CPU time, in microseconds, that processes and their descendants have used. The kernel's scheduler counts it
 * in nanoseconds for each thread. A reading is never less than the one before:
 * - a thread that has ended keeps the time of its last reading;
 * - the time of a process that has ended is in its parent's account of children, to a hundredth of a second.
 */
export function createCpuMeter(pids: readonly number[]) {
  const threads = new Map<number, Map<string, number>>()
  let last = 0
  return async (): Promise<number> => {
    const tree = await listTree(pids)
    for (const pid of threads.keys()) if (!tree.includes(pid)) threads.delete(pid)
    let microseconds = 0
    for (const pid of tree) {
      const known = threads.get(pid) ?? new Map<string, number>()
      threads.set(pid, known)
      await readThreads(pid, known)
      for (const nanoseconds of known.values()) microseconds += nanoseconds / 1000
      microseconds += await endedChildrenMicroseconds(pid)
    }
    last = Math.max(last, microseconds)
    return last
  }
}
export type CpuMeter = ReturnType<typeof createCpuMeter>

/** The CPU time of the thread that runs a Node process's JavaScript. */
export async function mainThreadMicroseconds(pid: number): Promise<number> {
  const [onCpu = ''] = (await readText(`/proc/${pid}/task/${pid}/schedstat`)).split(' ')
  return Number(onCpu) / 1000
}

/** The processes and everything that they have started. */
async function listTree(pids: readonly number[]): Promise<number[]> {
  const found: number[] = []
  for (const pid of pids) {
    const tasks = await readdir(`/proc/${pid}/task`).catch((): string[] => [])
    if (tasks.length === 0) continue
    found.push(pid)
    for (const task of tasks) {
      const children = await readText(`/proc/${pid}/task/${task}/children`)
      found.push(...(await listTree(children.split(' ').filter(Boolean).map(Number))))
    }
  }
  return found
}

/** A process or thread may end while it is being read. */
const readText = (file: string) => readFile(file, 'utf8').catch(() => '')

async function readThreads(pid: number, known: Map<string, number>) {
  for (const task of await readdir(`/proc/${pid}/task`).catch((): string[] => [])) {
    const [onCpu] = (await readText(`/proc/${pid}/task/${task}/schedstat`)).split(' ')
    if (onCpu) known.set(task, Number(onCpu))
  }
}

async function endedChildrenMicroseconds(pid: number): Promise<number> {
  const [, , user = 0, system = 0] = await readTicks(pid)
  return ((user + system) * 1e6) / ticksPerSecond
}

/** In ticks of the kernel, user and system time: of the process with all threads it ever had, and of its ended children. */
async function readTicks(pid: number): Promise<number[]> {
  const line = await readText(`/proc/${pid}/stat`)
  // The name in brackets may contain any character, so fields are counted after it.
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ')
  return fields.slice(11, 15).map(Number)
}

/**
 * The CPU time of processes and of everything they have ever started. Rougher than a meter, but it also has the threads that
 * began and ended unseen.
 */
export async function treeSeconds(pids: readonly number[]): Promise<number> {
  let ticks = 0
  for (const pid of await listTree(pids)) {
    for (const part of await readTicks(pid)) ticks += part
  }
  return ticks / ticksPerSecond
}

/** The resident memory of these processes and their descendants, in megabytes. */
export async function memoryMegabytes(pids: readonly number[]): Promise<number> {
  const sizes = await Promise.all((await listTree(pids)).map(residentKilobytes))
  return sizes.reduce((sum, size) => sum + size, 0) / 1024
}

async function residentKilobytes(pid: number): Promise<number> {
  const status = await readText(`/proc/${pid}/status`)
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0)
}

/** Keeps processes, with all their threads, on one core. */
export function pin(pids: readonly number[], core: number) {
  for (const pid of pids) execFileSync('taskset', ['-acp', String(core), String(pid)])
}
