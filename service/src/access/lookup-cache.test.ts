import { expect, test } from 'vitest'

import { createLookupCache } from './lookup-cache.ts'

type Found = { id: string; organization: string }

const found: Found = { id: 'key_1', organization: 'org_1' }
const away = Object.assign(new Error('lost'), { code: 'ECONNREFUSED' })

function start(options: { outageMs?: number; entriesMax?: number } = {}) {
  let nowMs = 1_000_000
  const cache = createLookupCache<Found>({
    now: () => new Date(nowMs),
    outageMs: 600_000,
    dependsOn: ({ id, organization }) => [id, organization],
    ...options,
  })
  return {
    ...cache,
    pass: (ms: number) => void (nowMs += ms),
    /** Looks a key up in a store that knows this value for it. */
    load: (key: string, value: Found | undefined) => cache.get(key, () => Promise.resolve(value)),
    outage: (key: string, error: Error = away) => cache.get(key, () => Promise.reject(error)),
  }
}

test('a value that was never loaded must be queried', () => {
  expect(start().peek('k')).toBeUndefined()
})

test('a known value is cached for exactly a minute', async () => {
  const { load, peek, pass } = start()
  expect(await load('k', found)).toBe(found)
  pass(59_999)
  expect(peek('k')).toBe(found)
  pass(1)
  expect(peek('k')).toBeUndefined()
})

test('an unknown value is cached for exactly two seconds', async () => {
  const { load, peek, pass } = start()
  expect(await load('k', undefined)).toBeUndefined()
  pass(1999)
  expect(peek('k')).toBeNull()
  pass(1)
  expect(peek('k')).toBeUndefined()
})

test('reading a value does not prolong its life', async () => {
  const { load, peek, pass } = start()
  await load('k', found)
  for (let each = 0; each < 6; each++) {
    peek('k')
    pass(10_000)
  }
  expect(peek('k')).toBeUndefined()
})

test('a new query makes a value fresh again, also when it has changed', async () => {
  const { load, peek, pass } = start()
  await load('k', undefined)
  await load('k', found)
  expect(peek('k')).toBe(found)
  pass(30_000)
  await load('k', undefined)
  expect(peek('k')).toBeNull()
})

test.each(['key_1', 'org_1'])('a change of %s makes the value void at once', async (id) => {
  const { load, peek, forget } = start()
  await load('k', found)
  forget(id)
  expect(peek('k')).toBeUndefined()
})

test('a change of something else leaves the value', async () => {
  const { load, peek, forget } = start()
  await load('k', found)
  for (const id of ['key_2', 'org_2', 'k', '']) forget(id)
  expect(peek('k')).toBe(found)
})

test('a change of an organization makes all its keys void and no others', async () => {
  const { load, peek, forget } = start()
  await load('a', { id: 'key_1', organization: 'org_1' })
  await load('b', { id: 'key_2', organization: 'org_1' })
  const other = { id: 'key_3', organization: 'org_2' }
  await load('c', other)
  forget('org_1')
  expect([peek('a'), peek('b'), peek('c')]).toEqual([undefined, undefined, other])
})

test('a value dropped by one of its ids and loaded again is dropped by the other', async () => {
  const { load, peek, forget } = start()
  await load('k', found)
  forget('key_1')
  await load('k', found)
  forget('org_1')
  expect(peek('k')).toBeUndefined()
})

test('forgetAll drops everything', async () => {
  const { load, peek, forgetAll } = start()
  await load('a', found)
  await load('b', undefined)
  forgetAll()
  expect([peek('a'), peek('b')]).toEqual([undefined, undefined])
})

test.each(['forget', 'forgetAll'] as const)(
  'a value read before a change is not cached after it (%s)',
  async (how) => {
    const cache = start()
    const reading = Promise.withResolvers<Found | undefined>()
    const answer = cache.get('k', () => reading.promise)
    cache[how]('key_1')
    reading.resolve(found)
    expect(await answer).toBe(found)
    expect(cache.peek('k')).toBeUndefined()
  },
)

test.each(['forget', 'forgetAll'] as const)(
  'a caller that comes after a change does not get a value read before it (%s)',
  async (how) => {
    const cache = start()
    const before = Promise.withResolvers<Found | undefined>()
    const first = cache.get('k', () => before.promise)
    cache[how]('key_1')
    const second = cache.get('k', () => Promise.resolve(undefined))
    expect(await second).toBeUndefined()
    before.resolve(found)
    expect(await first).toBe(found)
    expect(cache.peek('k')).toBeNull()
  },
)

test('a value that was unknown before a change is not cached as unknown after it', async () => {
  const cache = start()
  const reading = Promise.withResolvers<Found | undefined>()
  const answer = cache.get('k', () => reading.promise)
  cache.forget('org_1')
  reading.resolve(undefined)
  expect(await answer).toBeUndefined()
  expect(cache.peek('k')).toBeUndefined()
})

test('concurrent callers of one key share one query', async () => {
  const cache = start()
  const reading = Promise.withResolvers<Found | undefined>()
  let questions = 0
  const ask = () => {
    questions++
    return reading.promise
  }
  const answers = Promise.all([cache.get('k', ask), cache.get('k', ask), cache.get('k', ask)])
  reading.resolve(found)
  expect(await answers).toEqual([found, found, found])
  expect(questions).toBe(1)
  await cache.get('k', ask)
  expect(questions).toBe(2)
})

test('callers of different keys do not wait for each other', async () => {
  const cache = start()
  void cache.get('slow', () => new Promise<never>(() => undefined))
  expect(await cache.get('k', () => Promise.resolve(found))).toBe(found)
})

test('the next caller repeats a failed query', async () => {
  const { outage, load } = start()
  await expect(outage('k')).rejects.toBe(away)
  expect(await load('k', found)).toBe(found)
})

test('while the database is away a known value is served until it is too old', async () => {
  const { load, outage, peek, pass } = start({ outageMs: 600_000 })
  await load('k', found)
  pass(599_999)
  expect(peek('k')).toBeUndefined()
  expect(await outage('k')).toBe(found)
  pass(1)
  await expect(outage('k')).rejects.toBe(away)
})

test('serving a value during an outage does not renew it', async () => {
  const { load, outage, peek, pass } = start()
  await load('k', found)
  pass(60_000)
  await outage('k')
  pass(1000)
  expect(peek('k')).toBeUndefined()
})

test('for a second after a failed query known values are served without a query', async () => {
  const { load, outage, peek, pass } = start({ outageMs: 600_000 })
  await load('k', found)
  await load('other', found)
  pass(60_000)
  expect(peek('other')).toBeUndefined()
  await outage('k')
  expect(peek('other')).toBe(found)
  expect(peek('never seen')).toBeUndefined()
  pass(1000)
  expect(peek('other')).toBeUndefined()
})

test('with an outage time of zero nothing is served without the database', async () => {
  const { load, outage } = start({ outageMs: 0 })
  await load('k', found)
  await expect(outage('k')).rejects.toBe(away)
})

test('an unseen or dropped credential fails while the database is away', async () => {
  const { load, outage, forget } = start()
  await expect(outage('never seen')).rejects.toBe(away)
  await load('k', found)
  forget('key_1')
  await expect(outage('k')).rejects.toBe(away)
})

test('an error that is no outage is passed on', async () => {
  const { load, outage } = start()
  await load('k', found)
  const bug = new TypeError('bug')
  await expect(outage('k', bug)).rejects.toBe(bug)
})

test('a flood of unknown keys evicts no known one, and is bounded itself', async () => {
  const { load, peek } = start({ entriesMax: 2 })
  await load('k', found)
  for (let each = 0; each < 10; each++) await load(`guess ${each}`, undefined)
  expect(peek('k')).toBe(found)
  expect(['guess 7', 'guess 8', 'guess 9'].map(peek)).toEqual([undefined, null, null])
})

test('only the latest of very many known keys are cached', async () => {
  const { load, peek, forget } = start({ entriesMax: 2 })
  const values = ['a', 'b', 'c'].map((id) => ({ id, organization: 'org_1' }))
  for (const value of values) await load(value.id, value)
  expect(['a', 'b', 'c'].map(peek)).toEqual([undefined, values[1], values[2]])
  forget('org_1')
  expect(['a', 'b', 'c'].map(peek)).toEqual([undefined, undefined, undefined])
})

test('a restored value is served during an outage, by its original age', async () => {
  const { restore, outage, pass, entries } = start({ outageMs: 600_000 })
  const loadedAtMs = 1_000_000 - 300_000
  restore([['k', { value: found, loadedAtMs }]])
  expect(entries()).toEqual([['k', { value: found, loadedAtMs }]])
  expect(await outage('k')).toBe(found)
  pass(300_000)
  await expect(outage('k')).rejects.toBe(away)
})

test('nothing is restored once a change has arrived', async () => {
  const { restore, forgetAll, load, peek } = start()
  await load('k', found)
  restore([['k', { value: { ...found, id: 'older' }, loadedAtMs: 999_999 }]])
  expect(peek('k')).toBe(found)
  forgetAll()
  restore([['k', { value: found, loadedAtMs: 1_000_000 }]])
  expect(peek('k')).toBeUndefined()
})

test('a restored value is dropped with what it depends on', () => {
  const { restore, forget, peek } = start()
  restore([['k', { value: found, loadedAtMs: 1_000_000 }]])
  expect(peek('k')).toBe(found)
  forget('org_1')
  expect(peek('k')).toBeUndefined()
})
