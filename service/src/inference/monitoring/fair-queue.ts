import { createFairLine } from '#platform/lines/fair-line.ts'

/** What waits. Neither of its functions may throw. */
export type QueuedWork = {
  run(signal: AbortSignal): Promise<void>
  /** Called instead of `run` if the queue stops before. */
  drop(): Promise<void>
}

export type QueueSize = { readonly entries: number; readonly bytes: number }

type Sizes = { most: QueueSize; mostOfOne: QueueSize }
type Options = Sizes & { atOnce: number; onWaiting(count: number): void }
type Entry = { owner: string; bytes: number; work: QueuedWork }

/**
 * A queue of work that no caller waits for. Both the number of entries and the memory they keep are bounded, in total and for
 * each organization, and organizations take turns.
 */
export function createFairQueue({ atOnce, onWaiting, ...sizes }: Options) {
  const stopping = new AbortController()
  const room = createRoom(sizes)
  /** What may wait is decided by the room, which also counts what runs. */
  const line = createFairLine<Entry>()
  let running = 0
  let isStopping = false

  function takeNext(): Entry | undefined {
    const entry = line.takeNext()
    onWaiting(line.size())
    return entry
  }

  async function begin({ owner, bytes, work }: Entry) {
    running++
    await work.run(stopping.signal)
    running--
    room.free(owner, bytes)
    beginMore()
  }

  function beginMore() {
    while (running < atOnce) {
      const entry = takeNext()
      if (!entry) return
      void begin(entry)
    }
  }

  function dropAll() {
    const dropped: Entry[] = []
    for (let entry = takeNext(); entry; entry = takeNext()) dropped.push(entry)
    stopping.abort(new Error('the process stops'))
    for (const { owner, bytes, work } of dropped) {
      void work.drop().then(() => room.free(owner, bytes))
    }
  }

  return {
    /** Reserves a place for work, which the caller must then add; null if there is no room. */
    reserve(owner: string, bytes: number): ((work: QueuedWork) => void) | null {
      if (isStopping || !room.take(owner, bytes)) return null
      return (work) => {
        line.add(owner, { owner, bytes, work })
        onWaiting(line.size())
        // The caller goes on first.
        setImmediate(beginMore)
      }
    },
    /** Lets work go on for this long, and drops the rest. */
    async stop(maxMs: number) {
      isStopping = true
      const timer = setTimeout(dropAll, maxMs)
      await room.empty()
      clearTimeout(timer)
    },
  }
}

/** How much waits and runs. */
function createRoom({ most, mostOfOne }: Sizes) {
  const usedBy = new Map<string, QueueSize>()
  let used = nothing
  let onEmpty = () => {}
  return {
    /** Returns false if the work does not fit. */
    take(owner: string, bytes: number): boolean {
      const [all, own] = [add(used, 1, bytes), add(usedBy.get(owner) ?? nothing, 1, bytes)]
      if (exceeds(all, most) || exceeds(own, mostOfOne)) return false
      used = all
      usedBy.set(owner, own)
      return true
    },
    free(owner: string, bytes: number) {
      used = add(used, -1, -bytes)
      const own = add(usedBy.get(owner) ?? nothing, -1, -bytes)
      if (own.entries > 0) usedBy.set(owner, own)
      else usedBy.delete(owner)
      if (used.entries === 0) onEmpty()
    },
    async empty() {
      if (used.entries > 0) await new Promise<void>((resolve) => (onEmpty = resolve))
    },
  }
}

const nothing: QueueSize = { entries: 0, bytes: 0 }

const add = (one: QueueSize, entries: number, bytes: number): QueueSize => ({
  entries: one.entries + entries,
  bytes: one.bytes + bytes,
})

const exceeds = (one: QueueSize, most: QueueSize) =>
  one.entries > most.entries || one.bytes > most.bytes
