import { setImmediate as nextTurn } from 'node:timers/promises'

import { expect, test } from 'vitest'

import { TooManyWaiting } from '#platform/batched.ts'

import {
  createBatchQueues,
  createLockedAccounts,
  createWaiting,
  type Waiting,
} from './batch-queues.ts'
import { separateStatementsMax } from './hold-pool.ts'

type Item = { organizationId: string; id: string }
const item = (organizationId: string, id = 'req'): Item => ({ organizationId, id })
const lockTimeout = () => Object.assign(new Error('lock timeout'), { code: '55P03' })

/** Answers with the ids. A statement with a locked organization waits until `timeOut`, then fails. */
function createQueues(lockedOrganizations: readonly string[], canFindUnlocked = true) {
  const isLocked = new Set(lockedOrganizations)
  const statements: string[][] = []
  const timeouts: (() => void)[] = []
  const run = async (items: readonly Item[]) => {
    statements.push(items.map(({ organizationId }) => organizationId))
    if (items.some(({ organizationId }) => isLocked.has(organizationId))) {
      await new Promise<void>((resolve) => timeouts.push(resolve))
      throw lockTimeout()
    }
    return items.map(({ id }) => id)
  }
  const findUnlocked = async (organizationIds: readonly string[]) => {
    if (!canFindUnlocked) throw new Error('the database is away')
    return organizationIds.filter((id) => !isLocked.has(id))
  }
  const { push, pushAlone } = createBatchQueues<Item, string>({
    run,
    lockedAccounts: createLockedAccounts(findUnlocked),
    onFailure: ({ reject }, error) => reject(error),
  })
  const answerTo = (pushTo: (waiting: Waiting<Item, string>) => void) => (each: Item) =>
    new Promise<string>((resolve, reject) => pushTo(createWaiting(each, resolve, reject)))
  const timeOut = async () => {
    await turns()
    for (const resolve of timeouts.splice(0)) resolve()
    await turns()
  }
  return {
    statements,
    isLocked,
    timeOut,
    push,
    runBatched: answerTo(push),
    runAlone: answerTo(pushAlone),
  }
}

async function turns() {
  for (let turn = 0; turn < 5; turn++) await nextTurn()
}

const outcomeOf = (promise: Promise<string>) =>
  promise.catch((error: Error) => (error instanceof TooManyWaiting ? 'queue full' : error.message))

test('an organization with a locked account leaves the shared queue until a statement of its own succeeds', async () => {
  const { statements, isLocked, runBatched, timeOut } = createQueues(['a'])
  const all = () => ['a', 'b', 'c'].map((id) => outcomeOf(runBatched(item(id))))
  const first = all()
  await timeOut()
  expect(await Promise.all(first)).toEqual(['lock timeout', 'lock timeout', 'lock timeout'])
  const second = all()
  expect(await Promise.all(second.slice(1))).toEqual(['req', 'req'])
  expect(new Set(statements.slice(1))).toEqual(new Set([['a'], ['b', 'c']]))
  isLocked.clear()
  await timeOut()
  expect(await second[0]).toBe('lock timeout')
  expect(await Promise.all(all())).toEqual(['req', 'req', 'req'])
  await Promise.all(all())
  expect(new Set(statements.slice(3))).toEqual(new Set([['a'], ['b', 'c'], ['a', 'b', 'c']]))
})

test('an item whose account is found locked while it waits in the shared queue moves to the separate one', async () => {
  const { statements, runBatched, timeOut } = createQueues(['a'])
  const first = outcomeOf(runBatched(item('a')))
  await turns()
  const [again, other] = [outcomeOf(runBatched(item('a'))), runBatched(item('b'))]
  await timeOut()
  expect(await Promise.all([first, other])).toEqual(['lock timeout', 'req'])
  expect(statements).toEqual([['a'], ['b'], ['a']])
  await timeOut()
  expect(await again).toBe('lock timeout')
})

test.each([
  { why: 'the database cannot say which account is locked', canFindUnlocked: false },
  { why: 'the lock is gone by the time it is looked for', canFindUnlocked: true },
])(
  'every organization of the batch gets a separate queue when $why, and returns',
  async (given) => {
    const { statements, isLocked, runBatched, timeOut } = createQueues(['a'], given.canFindUnlocked)
    const all = () => Promise.all(['a', 'b', 'c'].map((id) => outcomeOf(runBatched(item(id)))))
    const first = all()
    await turns()
    isLocked.clear()
    await timeOut()
    expect(await first).toEqual(['lock timeout', 'lock timeout', 'lock timeout'])
    expect(await all()).toEqual(['req', 'req', 'req'])
    expect(await all()).toEqual(['req', 'req', 'req'])
    expect(statements).toEqual([['a', 'b', 'c'], ['a'], ['b'], ['c'], ['a', 'b', 'c']])
  },
)

test('an item that is given up while it waits is not started, and is rejected', async () => {
  const { statements, push } = createQueues([])
  const outcomes: string[] = []
  const waiting = createWaiting(
    item('a'),
    (answer: string) => void outcomes.push(answer),
    (error) => void outcomes.push((error as Error).message),
  )
  push(waiting)
  waiting.isGivenUp = true
  await turns()
  expect(statements).toEqual([])
  expect(outcomes).toEqual(['no caller waits for it any more'])
})

test('a locked organization whose items are all given up stays in its own queue', async () => {
  const { statements, push, runBatched, timeOut } = createQueues(['a'])
  const first = outcomeOf(runBatched(item('a')))
  await timeOut()
  expect(await first).toBe('lock timeout')
  const waiting = createWaiting(
    item('a'),
    () => undefined,
    () => undefined,
  )
  push(waiting)
  waiting.isGivenUp = true
  await turns()
  const both = [outcomeOf(runBatched(item('a'))), outcomeOf(runBatched(item('b')))]
  expect(await both[1]).toBe('req')
  expect(new Set(statements.slice(1))).toEqual(new Set([['a'], ['b']]))
  await timeOut()
  expect(await both[0]).toBe('lock timeout')
})

test('a call that is in the queue twice is in two statements', async () => {
  const { statements, runBatched } = createQueues([])
  const twice = [runBatched(item('a')), runBatched(item('b')), runBatched(item('a'))]
  expect(await Promise.all(twice)).toEqual(['req', 'req', 'req'])
  expect(statements).toEqual([['a', 'b'], ['a']])
})

test('the separate queues run at most twelve statements at the same time', async () => {
  const names = Array.from({ length: 20 }, (_, index) => `org_${index}`)
  const { statements, runAlone, timeOut } = createQueues(names)
  const waiting = names.map((id) => outcomeOf(runAlone(item(id))))
  await turns()
  expect(separateStatementsMax).toBe(12)
  expect(statements).toHaveLength(12)
  await timeOut()
  expect(statements).toHaveLength(20)
  await timeOut()
  expect(await Promise.all(waiting)).toEqual(names.map(() => 'lock timeout'))
})

test('queues are bounded, and one organization cannot fill the queues of all', async () => {
  const { runAlone, timeOut, isLocked } = createQueues(['a', 'b', 'c'])
  const fill = (id: string) =>
    Array.from({ length: 1500 }, (_, index) => outcomeOf(runAlone(item(id, `${id}${index}`))))
  const all: Promise<string>[] = []
  for (const id of ['a', 'b', 'c']) {
    all.push(...fill(id))
    await turns()
  }
  isLocked.clear()
  await timeOut()
  const outcomes = await Promise.all(all)
  const refused = (from: number) =>
    outcomes.slice(from, from + 1500).filter((outcome) => outcome === 'queue full').length
  // The queue of one organization takes 1000 items, all separate queues together 2000.
  expect([refused(0), refused(1500), refused(3000)]).toEqual([500, 500, 1500])
  expect(await runAlone(item('c'))).toBe('req')
})

test('of the locked accounts the oldest are forgotten', async () => {
  const lockedAccounts = createLockedAccounts(() => Promise.resolve([]))
  await lockedAccounts.addLockedOf(Array.from({ length: 1001 }, (_, index) => `org_${index}`))
  expect(['org_0', 'org_1', 'org_1000'].map(lockedAccounts.has)).toEqual([false, true, true])
})
