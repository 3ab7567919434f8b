type BatchesOptions<Item> = {
  /** Must not reject: it tells each item itself how it went. */
  run(items: Item[]): Promise<void>
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

/**
 * Runs items in batches, one batch at a time. Items that arrive while a batch runs wait for the next one, so
 * batches grow with the load and no item waits for a timer.
 */
export function createBatches<Item>({ run, sizeMax, waitingMax }: BatchesOptions<Item>) {
  let waiting: Item[] = []
  let isRunning = false

  function runNext() {
    if (waiting.length === 0) {
      isRunning = false
      return
    }
    void run(takeBatch()).then(runSoon)
  }
  // One turn of the event loop later, so that callers the last batch has resumed can join the next one.
  const runSoon = () => void setImmediate(runNext)

  function takeBatch(): Item[] {
    if (waiting.length > sizeMax) return waiting.splice(0, sizeMax)
    const batch = waiting
    waiting = []
    return batch
  }

  /** False if the queue is full. */
  return (item: Item): boolean => {
    if (waiting.length >= waitingMax) return false
    waiting.push(item)
    if (!isRunning) {
      isRunning = true
      runSoon()
    }
    return true
  }
}

type Options<Item, Result> = {
  /** Returns one result per item, in the same order. */
  run(items: readonly Item[]): Promise<readonly Result[]>
  sizeMax: number
  waitingMax: number
}

type Waiting<Item, Result> = {
  item: Item
  signal: AbortSignal | undefined
  resolve(result: Result): void
  reject(error: unknown): void
}

/**
 * The same with a promise for each item. An item whose signal has aborted is not started; one that is running runs to
 * its end.
 */
export function createBatched<Item, Result>({ run, ...limits }: Options<Item, Result>) {
  const push = createBatches<Waiting<Item, Result>>({
    ...limits,
    run: (batch) => runBatch(batch.filter(isStillWanted)),
  })

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
      if (!push({ item, signal, resolve, reject })) reject(new TooManyWaiting())
    })
}

type Abortable = Pick<Waiting<unknown, unknown>, 'signal' | 'reject'>

function isStillWanted({ signal, reject }: Abortable): boolean {
  if (!signal?.aborted) return true
  reject(signal.reason)
  return false
}
