import type { Clock } from '#platform/clock.ts'

import type { Balance } from './read-store.ts'

type Copy = Balance & {
  /** When the question was asked whose answer this is: nothing in the copy is older. */
  freshAtMs: number
  notedAtMs: number
  readAtMs: number
}

/** What a caller is told is never older than this (G8.16). */
const servedMaxMs = 5000
/** Balances nobody has asked for in this time are forgotten. */
const readLatelyMs = 60_000
/** A settlement whose reply takes longer is given up on, so what a reply says is not older than this. */
const replyMaxMs = 2000

/** Copies of balances, each as old as its oldest part. Beyond `copiesMax` those go that were read longest ago. */
export function createBalanceMemory({ now, copiesMax }: { now: Clock; copiesMax: number }) {
  const copies = new Map<string, Copy>()

  /** The clock was set back since: nobody knows how old such a copy is. */
  const notFromTheFuture = (copy: Copy | undefined) =>
    copy && Math.max(copy.freshAtMs, copy.notedAtMs) > now().getTime() ? undefined : copy

  function put(organizationId: string, copy: Copy) {
    copies.set(organizationId, copy)
    const [oldest] = copies.keys()
    if (copies.size > copiesMax && oldest !== undefined) copies.delete(oldest)
  }

  return {
    /** Undefined when there is none, or none that may still be served. */
    read(organizationId: string): Balance | undefined {
      const copy = notFromTheFuture(copies.get(organizationId))
      const nowMs = now().getTime()
      if (!copy || nowMs - copy.freshAtMs > servedMaxMs) return undefined
      copies.delete(organizationId) // whoever was read last is forgotten last
      copies.set(organizationId, { ...copy, readAtMs: nowMs })
      return copy
    },
    /** Of answers that overtake each other, the one that was asked for last stays. */
    keep(organizationId: string, balance: Balance, askedAtMs: number) {
      const known = notFromTheFuture(copies.get(organizationId))
      if (known && known.freshAtMs > askedAtMs) return
      const { notedAtMs = -Infinity, readAtMs = now().getTime() } = known ?? {}
      const times = { freshAtMs: askedAtMs, notedAtMs, readAtMs }
      if (!known || notedAtMs <= askedAtMs) return put(organizationId, { ...balance, ...times })
      const freshAtMs = Math.min(askedAtMs, notedAtMs - replyMaxMs)
      put(organizationId, { ...balance, remaining: known.remaining, ...times, freshAtMs })
    },
    /** What a settlement has left for new calls. The totals it does not know stay as they are. */
    note(organizationId: string, remaining: bigint) {
      const copy = copies.get(organizationId)
      if (!copy) return
      const notedAtMs = now().getTime()
      const freshAtMs = Math.min(copy.freshAtMs, notedAtMs - replyMaxMs)
      copies.set(organizationId, { ...copy, remaining, notedAtMs, freshAtMs })
    },
    /** Forgets those nobody asks for any more; returns whose copies are left. */
    readLately(): string[] {
      const sinceMs = now().getTime() - readLatelyMs
      for (const [id, { readAtMs }] of copies) if (readAtMs < sinceMs) copies.delete(id)
      return [...copies.keys()]
    },
  }
}
