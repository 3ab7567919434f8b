/** Work that is done a little at a time. */
export type SlicedWork = {
  /** Runs until that time or one step longer; returns whether the work is done. Must not throw. */
  advance(untilMs: number): boolean
}

/** How long one slice of all work together lasts before the rest of the event loop gets its turn. */
const sliceMs = 2
/** How long new work may run without waiting for a slice, all of it together, in one turn of the event loop. */
const beginningsMs = 4
/**
 * The turns of a busy process are long, so there are few of them in a second. There a slice may last as long as everything else
 * in the turn did, up to this limit; otherwise calls would wait for seconds to be checked. With a higher limit the turns would
 * be too long while one large answer is checked.
 */
const longestMs = 8

type Owner = {
  /**
   * The time that counts as used by this owner. A new owner starts at the level of the others, so that it does not catch up on
   * what they used before it came.
   */
  usedMs: number
  waiting: SlicedWork[]
}

// Tests may replace the global one with a clock of their own; this is about the real event loop.
const nextTurn = setImmediate

const owners = new Map<string, Owner>()
/** How much the owner that was served last had used by then. No waiting owner has used less. */
let servedMs = 0
let begunMs = 0
/** When the turn began, as far as that is known: at the end of the last slice, or with the first work after a pause. */
let turnSinceMs = 0
let isScheduled = false
let isSliceOver = false

/**
 * Runs work in later turns of the event loop. Each turn has one slice for all such work of this process, so everything else is
 * held up by one slice per turn and not by one per piece of work. The owner that has used the least comes first, and the pieces
 * of work of one owner take turns.
 */
export function goOnLater(name: string, work: SlicedWork): void {
  const owner = ownerOf(name)
  owner.waiting.push(work)
  schedule()
}

/** How long new work of this owner may run now; 0 if it must wait for its turn. */
export function timeToBegin(name: string): number {
  const isWaiting = (owners.get(name)?.waiting.length ?? 0) > 0
  return isWaiting ? 0 : Math.max(0, Math.max(beginningsMs, othersMs()) - begunMs)
}

/** Counts the time for which new work of this owner has run. */
export function noteBegun(name: string, ms: number): void {
  begunMs += ms
  ownerOf(name).usedMs += ms
  schedule()
}

/**
 * Resolves when it is this owner's turn. The awaiting code may then work for a few milliseconds, and is charged a
 * whole slice.
 */
export function waitForSlice(name: string): Promise<void> {
  return new Promise((resolve) => {
    goOnLater(name, {
      advance() {
        isSliceOver = true
        ownerOf(name).usedMs += sliceMs
        resolve()
        return true
      },
    })
  })
}

/** Whether sliced work waits for the next turn. Tests with a clock of their own stop it until then. */
export function isWorkWaiting(): boolean {
  return isScheduled
}

function ownerOf(name: string): Owner {
  const known = owners.get(name)
  if (known) return known
  const owner = { usedMs: servedMs, waiting: [] }
  owners.set(name, owner)
  return owner
}

/** How long the rest of this turn has taken, up to `longestMs`. */
function othersMs(): number {
  if (!isScheduled) return 0
  return Math.min(longestMs, performance.now() - turnSinceMs - begunMs)
}

function schedule() {
  if (isScheduled) return
  isScheduled = true
  turnSinceMs = performance.now()
  nextTurn(runSlice)
}

function runSlice() {
  const untilMs = performance.now() + Math.max(sliceMs, othersMs() - begunMs)
  isScheduled = false
  isSliceOver = false
  begunMs = 0
  for (let nowMs = performance.now(); nowMs < untilMs && !isSliceOver;) {
    const owner = findLeastServed()
    const work = owner?.waiting.shift()
    if (!owner || !work) break
    servedMs = Math.max(servedMs, owner.usedMs)
    if (!work.advance(untilMs)) owner.waiting.push(work)
    const endedMs = performance.now()
    owner.usedMs += endedMs - nowMs
    nowMs = endedMs
  }
  forgetServed()
}

function findLeastServed(): Owner | undefined {
  let least: Owner | undefined
  for (const owner of owners.values()) {
    if (owner.waiting.length > 0 && (!least || owner.usedMs < least.usedMs)) least = owner
  }
  return least
}

/** An owner without work is remembered until the other owners have used as much as it has. */
function forgetServed() {
  let isAnyWaiting = false
  for (const [name, { waiting, usedMs }] of owners) {
    if (waiting.length > 0) isAnyWaiting = true
    else if (usedMs <= servedMs) owners.delete(name)
  }
  if (isAnyWaiting) return schedule()
  owners.clear()
}
