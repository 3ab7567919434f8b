/** Work that is done a little at a time. */
export type SlicedWork = {
  /** Goes on until then, or a step longer; returns whether it has ended. It must not throw. */
  advance(untilMs: number): boolean
}

/** How long all work together goes on before everything else in the event loop gets its turn. */
const sliceMs = 2
/** How long work that begins may go on at once, all of it together, in one turn of the event loop. */
const beginningsMs = 4
/**
 * In a busy process a turn takes long, and there are few of them in a second. There sliced work may go on for as long as
 * everything else in the turn took, up to this: otherwise calls would wait for seconds to be judged. More would make the turns of
 * one large answer too long.
 */
const longestMs = 8

type Owner = {
  /** What it has had, as far as it counts: an owner that comes late does not get what others have had before. */
  usedMs: number
  waiting: SlicedWork[]
}

// Tests may replace the global one with a clock of their own; this is about the real event loop.
const nextTurn = setImmediate

const owners = new Map<string, Owner>()
/** What the owner served last had used by then. No waiting owner has used less. */
let servedMs = 0
let begunMs = 0
/** When the turn began, as far as that is known: at the end of the last slice, or with the first work after a pause. */
let turnSinceMs = 0
let isScheduled = false
let isSliceOver = false

/**
 * Lets work go on in later turns of the event loop. In each turn there is one slice for all such work of this process, however
 * much of it there is: others are held up by one slice and not by one for each. The owner that has had the least comes
 * first, and the work of one owner goes on in turn.
 */
export function goOnLater(name: string, work: SlicedWork): void {
  const owner = ownerOf(name)
  owner.waiting.push(work)
  schedule()
}

/** How long work of this owner may go on at once; 0 where it has to wait for its turn. */
export function timeToBegin(name: string): number {
  const isWaiting = (owners.get(name)?.waiting.length ?? 0) > 0
  return isWaiting ? 0 : Math.max(0, Math.max(beginningsMs, othersMs()) - begunMs)
}

/** Work of this owner has taken this long at once. */
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

/** How long this turn has gone on without sliced work, as far as that counts. */
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

/** An owner without work is remembered until the others have had as much. */
function forgetServed() {
  let isAnyWaiting = false
  for (const [name, { waiting, usedMs }] of owners) {
    if (waiting.length > 0) isAnyWaiting = true
    else if (usedMs <= servedMs) owners.delete(name)
  }
  if (isAnyWaiting) return schedule()
  owners.clear()
}
