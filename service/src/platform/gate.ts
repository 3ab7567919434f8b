import { ApiError } from './api-error.ts'

/** Runs work in the name of somebody, when it is their turn. */
export type Gate = <T>(name: string, work: () => Promise<T>) => Promise<T>

type Options = { atOnce: number; waitingMax: number; waitMs: number; refusal?: string }

const ofOne = 'Too many requests of this organization wait in line.'

/**
 * Lets each name do `atOnce` things at a time. `waitingMax` more wait in line, for `waitMs` at most;
 * others are refused. Whoever waited too long has left the line: it will not be served later.
 */
export function createGate({ atOnce, waitingMax, waitMs, refusal = ofOne }: Options): Gate {
  const overloaded = () => new ApiError('overloaded', refusal)
  const lines = new Map<string, { running: number; waiting: (() => void)[] }>()

  async function enter(name: string) {
    const line = lines.get(name) ?? { running: 0, waiting: [] }
    lines.set(name, line)
    if (line.running < atOnce) {
      line.running++
      return
    }
    if (line.waiting.length >= waitingMax) throw overloaded()
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => {
        line.waiting.splice(line.waiting.indexOf(enterNow), 1)
        reject(overloaded())
      }, waitMs)
      const enterNow = () => {
        clearTimeout(timer)
        resolve()
      }
      line.waiting.push(enterNow)
    })
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
