import { BoundedMap } from '#platform/bounded-map.ts'
import type { Db } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'

import { addRefusals } from './refusal-store.ts'

type FullMinute = { organizationId: string; minute: Date; waiting: number }

const flushMs = 10_000
/** In the memory of one process. The oldest is forgotten with what it counted. */
const minutesMax = 1000

/** Refusals that get no event of their own, in memory for up to ten seconds. A crash loses those. */
export function createRefusalCounts({ db, log }: { db: Db; log: Log }) {
  const full = new BoundedMap<string, FullMinute>(minutesMax)
  const nameOf = (organizationId: string, minute: Date) => `${organizationId} ${minute.getTime()}`

  async function flush() {
    const counted = Array.from(full, ([name, each]) => ({ name, ...each }))
    for (const { name, waiting, ...minute } of counted) {
      if (waiting === 0) {
        full.delete(name) // nothing has come for ten seconds
        continue
      }
      await addRefusals(db, minute, waiting)
      const known = full.get(name)
      if (known) known.waiting -= waiting
    }
  }
  const flushOrLog = () =>
    flush().catch((error: unknown) => log.problem('refused_sign_ins_not_counted', error))

  const timer = setInterval(() => void flushOrLog(), flushMs).unref()
  return {
    /** Counts a refusal, if it is known that its minute has all of its events. */
    addIfFull(organizationId: string, minute: Date): boolean {
      const known = full.get(nameOf(organizationId, minute))
      if (known) known.waiting++
      return known !== undefined
    },
    noteFull(organizationId: string, minute: Date) {
      const name = nameOf(organizationId, minute)
      if (!full.get(name)) full.set(name, { organizationId, minute, waiting: 0 })
    },
    async stop() {
      clearInterval(timer)
      await flushOrLog()
    },
  }
}
