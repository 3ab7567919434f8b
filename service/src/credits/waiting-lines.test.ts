import { setImmediate as nextTurn } from 'node:timers/promises'

import { expect, test } from 'vitest'

import { TooManyWaiting } from '#platform/batched.ts'

import { createAside, createLines } from './waiting-lines.ts'

type Item = { organizationId: string; id: string }
const item = (organizationId: string, id = 'req'): Item => ({ organizationId, id })
const lockTimeout = () => Object.assign(new Error('lock timeout'), { code: '55P03' })

/** Answers with the ids; a batch with a locked organization fails when it is told to. */
function createHouse(locked: readonly string[], isAskable = true) {
  const isLocked = new Set(locked)
  const begun: string[][] = []
  const timeouts: (() => void)[] = []
  const run = async (items: readonly Item[]) => {
    begun.push(items.map(({ organizationId }) => organizationId))
    if (items.some(({ organizationId }) => isLocked.has(organizationId))) {
      await new Promise<void>((resolve) => timeouts.push(resolve))
      throw lockTimeout()
    }
    return items.map(({ id }) => id)
  }
  const findFree = async (organizationIds: readonly string[]) => {
    if (!isAskable) throw new Error('nobody can be asked')
    return organizationIds.filter((id) => !isLocked.has(id))
  }
  const lines = createLines(run, createAside(findFree))
  const timeOut = async () => {
    await turns()
    for (const resolve of timeouts.splice(0)) resolve()
    await turns()
  }
  return { begun, isLocked, timeOut, ...lines }
}

async function turns() {
  for (let turn = 0; turn < 5; turn++) await nextTurn()
}

const outcome = (promise: Promise<string>) =>
  promise.catch((error: Error) => (error instanceof TooManyWaiting ? 'crowded' : error.message))

test('a batch that meets a lock: who is locked stands aside until that has passed, the others stay together', async () => {
  const { begun, isLocked, together, timeOut } = createHouse(['a'])
  const all = () => ['a', 'b', 'c'].map((id) => outcome(together(item(id))))
  const first = all()
  await timeOut()
  expect(await Promise.all(first)).toEqual(['lock timeout', 'lock timeout', 'lock timeout'])
  const second = all()
  expect(await Promise.all(second.slice(1))).toEqual(['req', 'req'])
  expect(new Set(begun.slice(1))).toEqual(new Set([['a'], ['b', 'c']]))
  isLocked.clear()
  await timeOut()
  expect(await second[0]).toBe('lock timeout')
  expect(await Promise.all(all())).toEqual(['req', 'req', 'req'])
  await Promise.all(all())
  expect(new Set(begun.slice(3))).toEqual(new Set([['a'], ['b', 'c'], ['a', 'b', 'c']]))
})

test('who waits in the common line when set aside has to leave it', async () => {
  const { begun, together, timeOut } = createHouse(['a'])
  const first = outcome(together(item('a')))
  await turns()
  const [again, other] = [outcome(together(item('a'))), together(item('b'))]
  await timeOut()
  expect(await Promise.all([first, other])).toEqual(['lock timeout', 'req'])
  expect(begun).toEqual([['a'], ['b'], ['a']])
  await timeOut()
  expect(await again).toBe('lock timeout')
})

test.each([
  { why: 'nobody can be asked who it was', isAskable: false },
  { why: 'it was nobody whose account is locked now', isAskable: true },
])('each stands in a line of its own when $why, and who is free goes back', async (given) => {
  const { begun, isLocked, together, timeOut } = createHouse(['a'], given.isAskable)
  const all = () => Promise.all(['a', 'b', 'c'].map((id) => outcome(together(item(id)))))
  const first = all()
  await turns()
  isLocked.clear()
  await timeOut()
  expect(await first).toEqual(['lock timeout', 'lock timeout', 'lock timeout'])
  expect(await all()).toEqual(['req', 'req', 'req'])
  expect(await all()).toEqual(['req', 'req', 'req'])
  expect(begun).toEqual([['a', 'b', 'c'], ['a'], ['b'], ['c'], ['a', 'b', 'c']])
})

test('at most twelve organizations are at it in lines of their own', async () => {
  const names = Array.from({ length: 20 }, (_, index) => `org_${index}`)
  const { begun, alone, timeOut } = createHouse(names)
  const waiting = names.map((id) => outcome(alone(item(id))))
  await turns()
  expect(begun).toHaveLength(12)
  await timeOut()
  expect(begun).toHaveLength(20)
  await timeOut()
  expect(await Promise.all(waiting)).toEqual(names.map(() => 'lock timeout'))
})

test('no line grows for ever, and one organization cannot take the room of all', async () => {
  const { alone, timeOut, isLocked } = createHouse(['a', 'b', 'c'])
  const fill = (id: string) =>
    Array.from({ length: 1500 }, (_, index) => outcome(alone(item(id, `${id}${index}`))))
  const all: Promise<string>[] = []
  for (const id of ['a', 'b', 'c']) {
    all.push(...fill(id))
    await turns()
  }
  isLocked.clear()
  await timeOut()
  const answers = await Promise.all(all)
  const crowded = (from: number) =>
    answers.slice(from, from + 1500).filter((answer) => answer === 'crowded').length
  // The line of an organization takes 1000, all lines together 2000.
  expect([crowded(0), crowded(1500), crowded(3000)]).toEqual([500, 500, 1500])
  expect(await alone(item('c'))).toBe('req')
})

test('of those who stand aside the oldest are forgotten', async () => {
  const aside = createAside(() => Promise.resolve([]))
  await aside.addLocked(Array.from({ length: 1001 }, (_, index) => `org_${index}`))
  expect(['org_0', 'org_1', 'org_1000'].map(aside.has)).toEqual([false, true, true])
})
