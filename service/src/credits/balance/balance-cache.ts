import type { Balance } from '#credits/holds/account-store.ts'
import { settleMaxMs } from '#credits/settlement.ts'
import type { Clock } from '#platform/clock.ts'

// A cached balance has two sources:
//
// - A query reads all of it. Its numbers are at least as new as the moment at which the query was sent.
// - A settlement of this process returns `posted`, and nothing about `total` and `used`. Its statement may
//   have committed up to `settleMaxMs` before the result arrived (later results are discarded), so the
//   number is at least as new as its arrival minus `settleMaxMs`.
//
// `asOfMs` is the lesser of the two: no number in the copy is older.

type Copy = Balance & {
  asOfMs: number
  /** When the last settlement arrived whose `posted` this is; -Infinity if a query read it. */
  settledAtMs: number
  readAtMs: number
}

/** The oldest numbers that a caller gets. */
const servedMaxMs = 5000
/** A balance that is not read for this long is dropped. */
const unreadMaxMs = 60_000

/** Beyond `copiesMax`, drops the balance that was read longest ago. */
export function createBalanceCache({ now, copiesMax }: { now: Clock; copiesMax: number }) {
  /** In the order of their last read. A refresh by `put` or `setPosted` does not change the order. */
  const copies = new Map<string, Copy>()

  /** Leaves out a copy from before the clock was set back: its age is unknown. */
  function find(organizationId: string): Copy | undefined {
    const copy = copies.get(organizationId)
    if (!copy || Math.max(copy.asOfMs, copy.settledAtMs) > now().getTime()) return undefined
    return copy
  }

  return {
    /** Undefined if there is no balance that is new enough. */
    read(organizationId: string): Balance | undefined {
      const copy = find(organizationId)
      const nowMs = now().getTime()
      if (!copy || nowMs - copy.asOfMs > servedMaxMs) return undefined
      copies.delete(organizationId)
      copies.set(organizationId, { ...copy, readAtMs: nowMs })
      return copy
    },
    /** Stores what a query read, unless every number of the copy is newer. */
    put(organizationId: string, balance: Balance, queriedAtMs: number) {
      const known = find(organizationId)
      if (known && known.asOfMs > queriedAtMs) return
      copies.set(organizationId, merge(known, balance, queriedAtMs))
      const [first] = copies.keys()
      if (copies.size > copiesMax && first !== undefined) copies.delete(first)
    },
    /** Stores what a settlement left. Organizations that are not cached stay so. */
    setPosted(organizationId: string, posted: bigint) {
      const copy = find(organizationId)
      if (!copy) return
      const settledAtMs = now().getTime()
      const asOfMs = Math.min(copy.asOfMs, settledAtMs - settleMaxMs)
      copies.set(organizationId, { ...copy, posted, settledAtMs, asOfMs })
    },
    /** Drops what is not read any more; returns the organizations that are left. */
    dropUnread(): string[] {
      const sinceMs = now().getTime() - unreadMaxMs
      for (const [id, { readAtMs }] of copies) if (readAtMs < sinceMs) copies.delete(id)
      return [...copies.keys()]
    },
  }

  /** The query may have run before a settlement that arrived meanwhile: that one's `posted` stays. */
  function merge(known: Copy | undefined, balance: Balance, queriedAtMs: number): Copy {
    const { settledAtMs = -Infinity, readAtMs = now().getTime() } = known ?? {}
    const copy = { ...balance, asOfMs: queriedAtMs, settledAtMs, readAtMs }
    if (!known || settledAtMs <= queriedAtMs) return copy
    const asOfMs = Math.min(queriedAtMs, settledAtMs - settleMaxMs)
    return { ...copy, posted: known.posted, asOfMs }
  }
}
