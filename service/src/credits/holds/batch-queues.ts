import type { CallRef } from '#credits/settlement.ts'
import { createBatched, TooManyWaiting } from '#platform/batched.ts'
import { BoundedMap } from '#platform/bounded-map.ts'
import { isLockTimeout } from '#platform/database.ts'
import { createGate } from '#platform/gate.ts'

import { separateStatementsMax } from './hold-pool.ts'

/** Answers a batch with one statement; the answers are in the order of the items. */
export type RunBatch<Item, Answer> = (items: readonly Item[]) => Promise<readonly Answer[]>

/** How many items a statement takes. */
export const batchMax = 128
const waitingMax = 2000
const lockedMax = 1000

type FindUnlocked = (organizationIds: readonly string[]) => Promise<readonly string[]>

/**
 * The organizations whose account another transaction keeps locked, as far as this process knows. One stays
 * here until a statement of its own succeeds. Holds, settlements and releases share this list.
 */
export function createLockedAccounts(findUnlocked: FindUnlocked) {
  const locked = new BoundedMap<string, true>(lockedMax)
  const gate = createGate({ atOnce: separateStatementsMax, waitingMax: lockedMax, waitMs: 2000 })

  return {
    has: (organizationId: string) => locked.has(organizationId),
    /**
     * Adds those of a batch's organizations whose account is locked. If that cannot be found out, or the
     * lock is gone by now, adds all of them: each that is not locked leaves with its next statement.
     */
    async addLockedOf(organizationIds: readonly string[]) {
      const isOne = organizationIds.length === 1
      const unlocked = new Set(isOne ? [] : await findUnlocked(organizationIds).catch(() => []))
      const stillLocked = organizationIds.filter((id) => !unlocked.has(id))
      for (const id of stillLocked.length > 0 ? stillLocked : organizationIds) locked.set(id, true)
    },
    delete: (organizationId: string) => void locked.delete(organizationId),
    /** Runs a statement of a separate queue as soon as one of their connections is free. */
    runInTurn: <T>(statement: () => Promise<T>) => gate('separate queues', statement),
  }
}
export type LockedAccounts = ReturnType<typeof createLockedAccounts>

/**
 * Batches items into statements. A statement waits for every account in its batch, so organizations with a
 * locked account leave the shared queue for a queue of their own: they delay only themselves.
 */
export function createBatchQueues<Item extends CallRef, Answer>(
  run: RunBatch<Item, Answer>,
  lockedAccounts: LockedAccounts,
) {
  const sharedQueue = createBatched({ run: runShared, sizeMax: batchMax, waitingMax })
  const separateQueues = createQueuePerOrganization(runSeparate, batchMax)
  const singleItemQueues = createQueuePerOrganization(runSeparate, 1)

  async function runAndFindLocked(items: readonly Item[]) {
    try {
      return await run(items)
    } catch (error) {
      const organizationIds = new Set(items.map(({ organizationId }) => organizationId))
      if (isLockTimeout(error)) await lockedAccounts.addLockedOf([...organizationIds])
      throw error
    }
  }

  /** Leaves out the items whose account was found locked while they waited in the shared queue. */
  async function runShared(items: readonly Item[]): Promise<readonly (Answer | typeof leftOut)[]> {
    const included = items.filter(({ organizationId }) => !lockedAccounts.has(organizationId))
    const answers = included.length > 0 ? await runAndFindLocked(included) : []
    const answerOf = new Map(included.map((item, index) => [item, answers[index] as Answer]))
    return items.map((item) => (answerOf.has(item) ? (answerOf.get(item) as Answer) : leftOut))
  }

  async function runSeparate(items: readonly Item[], organizationId: string) {
    const answers = await lockedAccounts.runInTurn(() => runAndFindLocked(items))
    lockedAccounts.delete(organizationId)
    return answers
  }

  return {
    async runBatched(item: Item, signal?: AbortSignal): Promise<Answer> {
      const isLocked = lockedAccounts.has(item.organizationId)
      const answer = isLocked ? leftOut : await sharedQueue(item, signal)
      return answer === leftOut ? separateQueues(item, signal) : answer
    },
    /** In a statement without other items. */
    runAlone: singleItemQueues,
  }
}

const leftOut = Symbol('left out of the batch')

/** Half of `waitingMax` is for one organization, so that none of them fills the queues of all. */
function createQueuePerOrganization<Item extends CallRef, Answer>(
  run: (items: readonly Item[], organizationId: string) => Promise<readonly Answer[]>,
  sizeMax: number,
) {
  const open = (organizationId: string) => ({
    push: createBatched<Item, Answer>({
      run: (items) => run(items, organizationId),
      sizeMax,
      waitingMax: waitingMax / 2,
    }),
    pending: 0,
  })
  const queues = new Map<string, ReturnType<typeof open>>()
  let pendingInAll = 0

  return async (item: Item, signal?: AbortSignal): Promise<Answer> => {
    if (pendingInAll >= waitingMax) throw new TooManyWaiting()
    const { organizationId } = item
    const queue = queues.get(organizationId) ?? open(organizationId)
    queues.set(organizationId, queue)
    pendingInAll++
    queue.pending++
    try {
      return await queue.push(item, signal)
    } finally {
      pendingInAll--
      queue.pending--
      if (queue.pending === 0) queues.delete(organizationId)
    }
  }
}
