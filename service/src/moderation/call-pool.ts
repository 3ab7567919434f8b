type Waiting = { begin(): void }

type Options = {
  atOnce: number
  waitingMax: number
  waitingOfOneMax: number
  /** The error for calls that find the queue full. `isOwnLine`: it is full of calls of the organization itself. */
  createRefusal: (isOwnLine: boolean) => Error
}

/**
 * Limits how many calls to a model run at a time; the others wait. Organizations take turns, so that one with many rules and
 * long texts delays another organization by one call, and not by all of its calls. No call waits for longer than its signal
 * allows.
 */
export function createCallPool(options: Options) {
  const { atOnce, waitingMax, waitingOfOneMax, createRefusal } = options
  /** The organization that had its turn last is the last in the map. */
  const lines = new Map<string, Set<Waiting>>()
  let running = 0
  let waiting = 0

  function leaveLine(name: string, line: Set<Waiting>, place: Waiting) {
    if (!line.delete(place)) return
    waiting--
    if (line.size === 0) lines.delete(name)
  }

  function beginNext() {
    const [next] = lines
    if (!next) return
    const [name, line] = next
    const [place] = line
    lines.delete(name)
    lines.set(name, line)
    if (!place) return
    leaveLine(name, line, place)
    running++
    place.begin()
  }

  function waitInLine(name: string, signal: AbortSignal): Promise<void> {
    const line = lines.get(name) ?? new Set()
    const isOwnLine = line.size >= waitingOfOneMax
    if (isOwnLine || waiting >= waitingMax) throw createRefusal(isOwnLine)
    lines.set(name, line)
    waiting++
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        leaveLine(name, line, place)
        reject(signal.reason as Error)
      }
      const place: Waiting = {
        begin() {
          signal.removeEventListener('abort', giveUp)
          resolve()
        },
      }
      line.add(place)
      signal.addEventListener('abort', giveUp, { once: true })
    })
  }

  return {
    /** Resolves when a call may be made. Each call must then `leave`. */
    async enter(organizationId: string, signal: AbortSignal): Promise<void> {
      signal.throwIfAborted()
      if (running < atOnce) running++
      else await waitInLine(organizationId, signal)
    },
    /** Whether a call may be made at once. Second tries ask this, because they must not take a turn from waiting calls. */
    tryEnter(): boolean {
      if (running >= atOnce || waiting > 0) return false
      running++
      return true
    },
    leave() {
      running--
      beginNext()
    },
  }
}
export type CallPool = ReturnType<typeof createCallPool>
