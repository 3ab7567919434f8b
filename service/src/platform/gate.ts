import { ApiError } from './api-error.ts'

/** Runs work in the name of somebody, when it is their turn. */
export type Gate = <T>(name: string, work: () => Promise<T>) => Promise<T>

/** Lets each name do `atOnce` things at a time; `waitingMax` more wait in line, others are refused. */
export function createGate({ atOnce, waitingMax }: { atOnce: number; waitingMax: number }): Gate {
  const lines = new Map<string, { running: number; waiting: (() => void)[] }>()

  async function enter(name: string) {
    const line = lines.get(name) ?? { running: 0, waiting: [] }
    lines.set(name, line)
    if (line.running < atOnce) {
      line.running++
      return
    }
    if (line.waiting.length >= waitingMax) {
      throw new ApiError('overloaded', 'Too many changes of this organization wait in line.')
    }
    await new Promise<void>((resolve) => line.waiting.push(resolve))
  }

  function leave(name: string) {
    const line = lines.get(name)
    if (!line) return
    const next = line.waiting.shift()
    if (next) next() // the place passes on, the count stays
    else if (--line.running === 0) lines.delete(name)
  }

  return async (name, work) => {
    await enter(name)
    try {
      return await work()
    } finally {
      leave(name)
    }
  }
}
