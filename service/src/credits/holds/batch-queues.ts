import { type CallRef, callKey } from '#credits/settlement.ts'
import { createBatches, TooManyWaiting } from '#platform/batched.ts'
import { BoundedMap } from '#platform/bounded-map.ts'
import { isLockTimeout } from '#platform/database.ts'
import { createGate } from '#platform/lines/gate.ts'

import { separateStatementsMax } from './hold-pool.ts'

/** Executes a batch with one statement; the answers are in the order of the items. */
export type RunBatch<Item, Answer> = (items: readonly Item[]) => Promise<readonly Answer[]>

/** An item in a queue. It is answered once, whichever queues it passes through. */
export type Waiting<Item, Answer> = {
  readonly item: Item
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
  /** Its caller has been refused meanwhile: it is not started any more. */
  isGivenUp: boolean
  /** How often its statement has failed, by kind of failure. */
  lockTimeouts: number
  lostConnections: number
  rejections: number
}

export const createWaiting = <Item, Answer>(
  item: Item,
  resolve: (answer: Answer) => void,
  reject: (error: unknown) => void,
): Waiting<Item, Answer> => ({
  item,
  resolve,
  reject,
  isGivenUp: false,
  lockTimeouts: 0,
  lostConnections: 0,
  rejections: 0,
})

/** How many items a statement takes. */
const batchMax = 128
const waitingMax = 4000
const separateWaitingMax = 2000
const lockedMax = 1000

type FindUnlocked = (organizationIds: readonly string[]) => Promise<readonly string[]>

/**
 * The organizations whose account another transaction keeps locked, as far as this process knows. One stays
 * here until a statement of its own succeeds.
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

type Options<Item, Answer> = {
  run: RunBatch<Item, Answer>
  lockedAccounts: LockedAccounts
  /** Decides about an item whose statement has failed: pushes it again, or rejects it. */
  onFailure(waiting: Waiting<Item, Answer>, error: unknown): void
}

/**
 * Batches items into statements. A statement waits for every account in its batch, so organizations with a
 * locked account leave the shared queue for a queue of their own: they delay only themselves.
 */
export function createBatchQueues<Item extends CallRef, Answer>(options: Options<Item, Answer>) {
  type Entry = Waiting<Item, Answer>
  const { run, lockedAccounts, onFailure } = options
  const shared = createBatches<Entry>({ run: runShared, sizeMax: batchMax, waitingMax })
  const pushSeparate = createQueuePerOrganization<Item, Answer>(runSeparate, batchMax)
  const pushAlone = createQueuePerOrganization<Item, Answer>(runSeparate, 1)

  async function runShared(entries: readonly Entry[]) {
    const included: Entry[] = []
    const calls = new Set<string>()
    for (const entry of entries) {
      if (entry.isGivenUp) entry.reject(givenUp())
      // Its account was found locked while it waited.
      else if (lockedAccounts.has(entry.item.organizationId)) pushSeparate(entry)
      else if (isFirst(calls, entry)) included.push(entry)
      else push(entry)
    }
    await execute(included).catch((error: unknown) => failAll(included, error))
  }

  async function runSeparate(entries: readonly Entry[], organizationId: string) {
    const included: Entry[] = []
    const calls = new Set<string>()
    for (const entry of entries) {
      if (entry.isGivenUp) entry.reject(givenUp())
      else if (isFirst(calls, entry)) included.push(entry)
      else pushSeparate(entry)
    }
    if (included.length === 0) return // no statement, so nothing is known about the lock
    try {
      await lockedAccounts.runInTurn(() => execute(included))
      lockedAccounts.delete(organizationId)
    } catch (error) {
      failAll(included, error)
    }
  }

  /** A caller that is answered here may push its next item at once. */
  async function execute(entries: readonly Entry[]) {
    if (entries.length === 0) return
    try {
      const answers = await run(entries.map(({ item }) => item))
      if (answers.length !== entries.length) throw new Error('a statement gave too few answers')
      for (const [index, { resolve }] of entries.entries()) resolve(answers[index] as Answer)
    } catch (error) {
      const organizationIds = new Set(entries.map(({ item }) => item.organizationId))
      if (isLockTimeout(error)) await lockedAccounts.addLockedOf([...organizationIds])
      throw error
    }
  }

  function failAll(entries: readonly Entry[], error: unknown) {
    for (const entry of entries) onFailure(entry, error)
  }

  function push(entry: Entry) {
    if (lockedAccounts.has(entry.item.organizationId)) pushSeparate(entry)
    else if (!shared(entry)) entry.reject(new TooManyWaiting())
  }

  return {
    push,
    /** Into a statement without other items. */
    pushAlone,
  }
}

const givenUp = () => new Error('no caller waits for it any more')

/** A statement has each call once: one that is asked for twice waits for the next, which finds what the first has done. */
function isFirst(calls: Set<string>, { item }: { item: CallRef }): boolean {
  const key = callKey(item)
  if (calls.has(key)) return false
  calls.add(key)
  return true
}

/** Half of the places are for one organization, so that none of them fills the queues of all. */
function createQueuePerOrganization<Item extends CallRef, Answer>(
  run: (entries: readonly Waiting<Item, Answer>[], organizationId: string) => Promise<void>,
  sizeMax: number,
) {
  type Entry = Waiting<Item, Answer>
  const open = (organizationId: string) => ({
    pending: 0,
    push: createBatches<Entry>({
      sizeMax,
      waitingMax: separateWaitingMax / 2,
      async run(entries) {
        await run(entries, organizationId)
        leave(organizationId, entries.length)
      },
    }),
  })
  const queues = new Map<string, ReturnType<typeof open>>()
  let pendingInAll = 0

  function leave(organizationId: string, count: number) {
    const queue = queues.get(organizationId)
    if (!queue) return
    pendingInAll -= count
    queue.pending -= count
    if (queue.pending === 0) queues.delete(organizationId)
  }

  return (entry: Entry): void => {
    const { organizationId } = entry.item
    const queue = queues.get(organizationId) ?? open(organizationId)
    if (pendingInAll >= separateWaitingMax || !queue.push(entry)) {
      entry.reject(new TooManyWaiting())
      return
    }
    queues.set(organizationId, queue)
    pendingInAll++
    queue.pending++
  }
}
