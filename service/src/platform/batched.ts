import { setImmediate as nextTurn } from 'node:timers/promises'

type Options<Item, Result> = {
  /** Returns one result per item, in the same order. */
  run(items: readonly Item[]): Promise<readonly Result[]>
  sizeMax: number
  waitingMax: number
}

/** The queue is full. */
export class TooManyWaiting extends Error {
  constructor() {
    super('too many items wait for a batch')
    this.name = 'TooManyWaiting'
  }
}

type Waiting<Item, Result> = {
  item: Item
  signal: AbortSignal | undefined
  resolve(result: Result): void
  reject(error: unknown): void
}

/**
 * Runs items in batches, one batch at a time. Items that arrive while a batch runs wait for the next one, so
 * batches grow with the load and no item waits for a timer. An item whose signal has aborted is not started;
 * one that is running runs to its end.
 */
export function createBatched<Item, Result>({ run, sizeMax, waitingMax }: Options<Item, Result>) {
  const waiting: Waiting<Item, Result>[] = []
  let isRunning = false

  async function runAll() {
    isRunning = true
    // One turn of the event loop, so that callers the last batch has resumed can join the next one.
    for (await nextTurn(); waiting.length > 0; await nextTurn()) {
      await runBatch(waiting.splice(0, sizeMax).filter(isStillWanted))
    }
    isRunning = false
  }

  async function runBatch(batch: readonly Waiting<Item, Result>[]) {
    if (batch.length === 0) return
    try {
      const results = await run(batch.map(({ item }) => item))
      if (results.length !== batch.length) throw new Error('a batch returned too few results')
      for (const [index, { resolve }] of batch.entries()) resolve(results[index] as Result)
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }

  return (item: Item, signal?: AbortSignal): Promise<Result> =>
    new Promise((resolve, reject) => {
      if (waiting.length >= waitingMax) {
        reject(new TooManyWaiting())
        return
      }
      waiting.push({ item, signal, resolve, reject })
      if (!isRunning) void runAll()
    })
}

type Abortable = Pick<Waiting<unknown, unknown>, 'signal' | 'reject'>

function isStillWanted({ signal, reject }: Abortable): boolean {
  if (!signal?.aborted) return true
  reject(signal.reason)
  return false
}
