import { setImmediate as nextTurn } from 'node:timers/promises'

type Options<Item, Result> = {
  /** The results stand in the order of the items. */
  run(items: readonly Item[]): Promise<readonly Result[]>
  sizeMax: number
  waitingMax: number
}

/** The line is full: this much work cannot be taken. */
export class TooManyWaiting extends Error {
  constructor() {
    super('too many wait for their batch')
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
 * Makes one piece of work out of many. Whatever comes while a batch is under way waits for the next one, so
 * batches grow with the load and nobody waits for a timer. One batch is under way at a time. An item whose
 * signal has fired is not begun any more; one that is under way runs to its end.
 */
export function createBatched<Item, Result>({ run, sizeMax, waitingMax }: Options<Item, Result>) {
  const waiting: Waiting<Item, Result>[] = []
  let isRunning = false

  async function runAll() {
    isRunning = true
    // A turn of the event loop: whoever the last batch has woken joins the next one.
    for (await nextTurn(); waiting.length > 0; await nextTurn()) {
      await runBatch(waiting.splice(0, sizeMax).filter(isStillWanted))
    }
    isRunning = false
  }

  async function runBatch(batch: readonly Waiting<Item, Result>[]) {
    if (batch.length === 0) return
    try {
      const results = await run(batch.map(({ item }) => item))
      if (results.length !== batch.length) throw new Error('a batch has lost some of its results')
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
