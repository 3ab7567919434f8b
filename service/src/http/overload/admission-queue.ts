import type { Cancellation } from '#platform/calls/cancellation.ts'

import { createLine, type Line } from './line.ts'

/** How many calls may have their limits and credits decided at a time. */
const atOnce = 32
/** An organization with this many calls in progress has its share. Some turns are kept for organizations with fewer. */
const share = 4
const keptForOthers = 16

type Owner = { running: number; waiting: Waiting[]; line: Line }
type Waiting = { since: number; line: Line; begin: () => void; refuse: (error: Error) => void }

/**
 * Limits how many calls have their limits and credits decided at a time; the others wait. Otherwise each turn of the event loop
 * would work on all of them, and all would be slow. Organizations below their share wait in one common line. An organization
 * above it has a line of its own, so that its backlog does not look like an overload of the whole process.
 */
export function createAdmissionQueue(nowMs: () => number) {
  const common = createLine(nowMs)
  /** The organization that was served last is the last in the map. */
  const owners = new Map<string, Owner>()
  let running = 0

  const lineOf = (owner: Owner | undefined) =>
    owner && owner.running + owner.waiting.length >= share ? owner.line : common
  const mayBegin = (owner: Owner) =>
    running < (owner.running < share ? atOnce : atOnce - keptForOthers)

  function begin(name: string, owner: Owner) {
    running++
    owner.running++
    owners.delete(name)
    owners.set(name, owner)
  }

  function leave(name: string, owner: Owner) {
    running--
    owner.running--
    if (owner.running === 0 && owner.waiting.length === 0) owners.delete(name)
    const next = findNext(owners)
    if (next && mayBegin(next[1])) beginNext(...next)
  }

  function beginNext(name: string, owner: Owner) {
    const next = owner.waiting.shift()
    if (!next) return
    next.line.leave()
    begin(name, owner)
    next.begin()
  }

  return {
    /** The line in which the organization's next call would wait; without a name, the common line. */
    lineOf: (name?: string): Line => (name === undefined ? common : lineOf(owners.get(name))),
    /**
     * Resolves when it is this call's turn, with the function that ends the turn. Rejects if the call waits too long or is
     * cancelled.
     */
    async enter(name: string, cancellation: Cancellation): Promise<() => void> {
      const owner = owners.get(name) ?? { running: 0, waiting: [], line: createLine(nowMs) }
      if (mayBegin(owner)) begin(name, owner)
      else {
        owners.set(name, owner)
        await wait({ owner, line: lineOf(owner), since: nowMs(), cancellation })
      }
      return () => leave(name, owner)
    },
    /** Refuses every call that has waited for longer than its line allows. */
    refuseLate(refusal: (line: Line) => Error) {
      const now = nowMs()
      for (const [name, owner] of owners) {
        const isLate = ({ since, line }: Waiting) => now - since > line.waitMaxMs()
        const late = owner.waiting.filter(isLate)
        owner.waiting = owner.waiting.filter((waiting) => !isLate(waiting))
        for (const { line, refuse } of late) {
          line.leave()
          refuse(refusal(line))
        }
        if (owner.running === 0 && owner.waiting.length === 0) owners.delete(name)
      }
    },
  }
}

/** The first organization with a waiting call and less than its share, or else the first with a waiting call. */
function findNext(owners: ReadonlyMap<string, Owner>): [string, Owner] | undefined {
  let first: [string, Owner] | undefined
  for (const entry of owners) {
    const [, { waiting, running }] = entry
    if (waiting.length === 0) continue
    if (running < share) return entry
    first ??= entry
  }
  return first
}

type Wait = { owner: Owner; line: Line; since: number; cancellation: Cancellation }

/** Waits in line until the call may begin, is refused, or is cancelled. */
async function wait({ owner, line, since, cancellation }: Wait) {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const waiting = { since, line, begin: resolve, refuse: reject }
  const leaving = {
    cancel(reason: Error) {
      if (!owner.waiting.includes(waiting)) return
      owner.waiting = owner.waiting.filter((other) => other !== waiting)
      line.leave()
      reject(reason)
    },
  }
  owner.waiting.push(waiting)
  line.enter()
  cancellation.add(leaving)
  try {
    await promise
  } finally {
    cancellation.remove(leaving)
  }
}
