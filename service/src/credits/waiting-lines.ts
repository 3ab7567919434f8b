import { createBatched, TooManyWaiting } from '#platform/batched.ts'
import { createGate } from '#platform/gate.ts'

import type { Hold } from './credit-store.ts'

/** Where an item belongs. */
export type Placed = Pick<Hold, 'organizationId' | 'id'>

export type Run<Item, Answer> = (items: readonly Item[]) => Promise<readonly Answer[]>

const sizeMax = 128
const waitingMax = 2000
const asideMax = 1000
/** The connections that all lines of single organizations have together. */
const ownAtOnce = 12

type FindFree = (organizationIds: readonly string[]) => Promise<readonly string[]>

/**
 * Organizations that have to wait for somebody who holds their account locked. Each stands here until one
 * of its own statements succeeds; to stand here costs nothing meanwhile.
 */
export function createAside(findFree: FindFree) {
  const organizationIds = new Set<string>()
  const gate = createGate({ atOnce: ownAtOnce, waitingMax: asideMax, waitMs: 2000 })

  function add(organizationId: string) {
    organizationIds.add(organizationId)
    const [oldest] = organizationIds
    if (organizationIds.size > asideMax && oldest !== undefined) organizationIds.delete(oldest)
  }

  return {
    has: (organizationId: string) => organizationIds.has(organizationId),
    /** One of them has met a lock. Whose it was the accounts say; if they do not, it may be anybody's. */
    async addLocked(suspects: readonly string[]) {
      const free = new Set(suspects.length > 1 ? await findFree(suspects).catch(() => []) : [])
      const locked = suspects.filter((organizationId) => !free.has(organizationId))
      for (const organizationId of locked.length > 0 ? locked : suspects) add(organizationId)
    },
    delete: (organizationId: string) => void organizationIds.delete(organizationId),
    inTurn: <T>(work: () => Promise<T>) => gate('own lines', work),
  }
}
export type Aside = ReturnType<typeof createAside>

/**
 * Everybody stands in one line and is served in batches, except the organizations that are set aside: a
 * batch waits for every account in it, and nobody shall wait for an account that is not their own.
 */
export function createLines<Item extends Placed, Answer>(run: Run<Item, Answer>, aside: Aside) {
  const common = createBatched({ run: runTogether, sizeMax, waitingMax })
  const own = createOwnLines(runOwn, sizeMax)
  const alone = createOwnLines(runOwn, 1)

  async function runAndNote(items: readonly Item[]) {
    try {
      return await run(items)
    } catch (error) {
      const organizationIds = new Set(items.map(({ organizationId }) => organizationId))
      if (isLockTimeout(error)) await aside.addLocked([...organizationIds])
      throw error
    }
  }

  /** Who was set aside while waiting here has to leave the line. */
  async function runTogether(
    items: readonly Item[],
  ): Promise<readonly (Answer | typeof isAside)[]> {
    const staying = items.filter(({ organizationId }) => !aside.has(organizationId))
    const answers = staying.length > 0 ? await runAndNote(staying) : []
    const answerOf = new Map(staying.map((item, index) => [item, answers[index] as Answer]))
    return items.map((item) => (answerOf.has(item) ? (answerOf.get(item) as Answer) : isAside))
  }

  async function runOwn(items: readonly Item[]) {
    const answers = await aside.inTurn(() => runAndNote(items))
    for (const { organizationId } of items) aside.delete(organizationId)
    return answers
  }

  async function together(item: Item, signal?: AbortSignal): Promise<Answer> {
    const answer = aside.has(item.organizationId) ? isAside : await common(item, signal)
    return answer === isAside ? own(item, signal) : answer
  }

  return { together, alone }
}

const isAside = Symbol('is set aside')

/** A line for each organization that has anything to do. No line may take up all the room there is. */
function createOwnLines<Item extends Placed, Answer>(run: Run<Item, Answer>, size: number) {
  const options = { run, sizeMax: size, waitingMax: waitingMax / 2 }
  const open = () => ({ take: createBatched(options), inside: 0 })
  const lines = new Map<string, ReturnType<typeof open>>()
  let insideAll = 0

  return async (item: Item, signal?: AbortSignal): Promise<Answer> => {
    if (insideAll >= waitingMax) throw new TooManyWaiting()
    const line = lines.get(item.organizationId) ?? open()
    lines.set(item.organizationId, line)
    insideAll++
    line.inside++
    try {
      return await line.take(item, signal)
    } finally {
      insideAll--
      line.inside--
      if (line.inside === 0) lines.delete(item.organizationId)
    }
  }
}

/** PostgreSQL has waited as long as it was told to, and has done nothing. */
export const isLockTimeout = (error: unknown) =>
  error instanceof Error && 'code' in error && error.code === '55P03'
