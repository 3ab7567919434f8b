import { expect, test } from 'vitest'

import { createCallPool } from './call-pool.ts'

const patience = new AbortController().signal
const createRefusal = (isOwnLine: boolean) => new Error(isOwnLine ? 'own line full' : 'all full')
const limits = { atOnce: 2, waitingMax: 10, waitingOfOneMax: 4, createRefusal }

/** Enters, and notes when its turn has come. */
function enterAll(pool: ReturnType<typeof createCallPool>, names: string[]) {
  const entered: string[] = []
  const all = names.map(async (name) => {
    await pool.enter(name, patience)
    entered.push(name)
  })
  return { entered, all }
}
const turn = () => new Promise((resolve) => setImmediate(resolve))

test('some at a time, the others when one leaves', async () => {
  const pool = createCallPool(limits)
  const { entered } = enterAll(pool, ['a', 'a', 'a', 'a'])
  await turn()
  expect(entered).toHaveLength(2)
  pool.leave()
  await turn()
  expect(entered).toHaveLength(3)
})

test('organizations take turns', async () => {
  const pool = createCallPool(limits)
  const { entered } = enterAll(pool, ['a', 'a', 'a', 'a', 'a', 'b', 'c', 'b'])
  for (let index = 0; index < 6; index++) {
    pool.leave()
    await turn()
  }
  expect(entered).toEqual(['a', 'a', 'a', 'b', 'c', 'a', 'b', 'a'])
})

test('an organization can fill its own line, and not that of the others', async () => {
  const pool = createCallPool(limits)
  const { all } = enterAll(pool, ['a', 'a', 'a', 'a', 'a', 'a'])
  await expect(pool.enter('a', patience)).rejects.toThrow('own line full')
  const { all: others } = enterAll(pool, ['b', 'b', 'b', 'b', 'c', 'c'])
  await expect(pool.enter('d', patience)).rejects.toThrow('all full')
  for (let index = 0; index < 10; index++) pool.leave()
  await Promise.all([...all, ...others])
})

test('who gives up leaves the line, and its turn goes to the next', async () => {
  const pool = createCallPool(limits)
  await Promise.all(enterAll(pool, ['a', 'a']).all)
  const leaving = new AbortController()
  const waiting = pool.enter('a', leaving.signal)
  const { entered } = enterAll(pool, ['b'])
  leaving.abort(new Error('gone'))
  await expect(waiting).rejects.toThrow('gone')
  await expect(pool.enter('a', leaving.signal)).rejects.toThrow('gone')
  pool.leave()
  await turn()
  expect(entered).toEqual(['b'])
})

test('a second try finds a place only if there is one for everybody', async () => {
  const pool = createCallPool(limits)
  expect([pool.tryEnter(), pool.tryEnter(), pool.tryEnter()]).toEqual([true, true, false])
  const { entered } = enterAll(pool, ['a'])
  pool.leave()
  await turn()
  expect([entered, pool.tryEnter()]).toEqual([['a'], false])
  pool.leave()
  expect(pool.tryEnter()).toBe(true)
})
