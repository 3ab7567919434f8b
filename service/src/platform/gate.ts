import { ApiError } from './api-error.ts'

/** Runs work for a name, such as an organization id, within that name's concurrency limit. */
export type Gate = <T>(name: string, work: () => Promise<T>) => Promise<T>

type Options = { atOnce: number; waitingMax: number; waitMs: number; refusal?: string }

const defaultRefusal = 'Too many requests of this organization are waiting; retry later.'

/**
 * Limits concurrency per name: `atOnce` run at a time, `waitingMax` more wait for at most `waitMs`, and
 * further ones are refused (529). Work that has waited too long is removed from the queue, never run later.
 */
export function createGate({
  atOnce,
  waitingMax,
  waitMs,
  refusal = defaultRefusal,
}: Options): Gate {
  const overloaded = () => new ApiError('overloaded', refusal)
  const queues = new Map<string, { running: number; waiting: (() => void)[] }>()

  async function enter(name: string) {
    const queue = queues.get(name) ?? { running: 0, waiting: [] }
    queues.set(name, queue)
    if (queue.running < atOnce) {
      queue.running++
      return
    }
    if (queue.waiting.length >= waitingMax) throw overloaded()
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => {
        queue.waiting.splice(queue.waiting.indexOf(enterNow), 1)
        reject(overloaded())
      }, waitMs)
      const enterNow = () => {
        clearTimeout(timer)
        resolve()
      }
      queue.waiting.push(enterNow)
    })
  }

  function leave(name: string) {
    const queue = queues.get(name)
    if (!queue) return
    const next = queue.waiting.shift()
    if (next) next() // takes over the slot, so `running` stays the same
    else if (--queue.running === 0) queues.delete(name)
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
