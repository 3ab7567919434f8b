import fc from 'fast-check'
import { expect, test } from 'vitest'

import { SharedMap } from './shared-map.ts'

test('what one owner has set, another does not find', () => {
  const map = new SharedMap<number>({ entriesMax: 10, shareMax: 5 })
  map.set('a', 'key', 1)
  expect([map.get('a', 'key'), map.get('b', 'key')]).toEqual([1, undefined])
})

test('an owner that is alone may use all of it', () => {
  const map = new SharedMap<number>({ entriesMax: 10, shareMax: 2 })
  for (let i = 0; i < 12; i++) map.set('a', String(i), i)
  expect(map.size).toBe(10)
  expect([map.get('a', '1'), map.get('a', '2')]).toEqual([undefined, 2])
})

test('one owner with very many entries drives out its own, and none of the others', () => {
  const map = new SharedMap<number>({ entriesMax: 100, shareMax: 10 })
  for (let i = 0; i < 10; i++) map.set('honest', String(i), i)
  for (let i = 0; i < 1000; i++) map.set('greedy', String(i), i)
  for (let i = 0; i < 10; i++) expect(map.get('honest', String(i))).toBe(i)
  expect([map.get('greedy', '909'), map.get('greedy', '910')]).toEqual([undefined, 910])
  map.set('new', 'key', 1)
  expect(map.get('new', 'key')).toBe(1)
  expect(map.get('greedy', '910')).toBeUndefined()
})

test('among owners within their shares, the one that has set nothing for the longest time loses one', () => {
  const map = new SharedMap<number>({ entriesMax: 3, shareMax: 2 })
  map.set('a', '1', 1)
  map.set('b', '1', 1)
  map.set('a', '2', 2)
  map.set('c', '1', 1)
  expect([map.get('a', '1'), map.get('b', '1'), map.get('c', '1')]).toEqual([1, undefined, 1])
})

test('it never has too many entries, and loses none of an owner within its share while another is beyond its own', () => {
  const step = fc.tuple(
    fc.constantFrom('a', 'b', 'c'),
    fc.integer({ min: 0, max: 40 }),
    fc.boolean(),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const map = new SharedMap<number>({ entriesMax: 20, shareMax: 5 })
      const set = new Map<string, Set<number>>()
      for (const [owner, key, isDeleted] of steps) {
        const own = set.get(owner) ?? new Set()
        set.set(owner, own)
        if (isDeleted) {
          own.delete(key)
          map.delete(owner, String(key))
        } else {
          own.add(key)
          map.set(owner, String(key), key)
        }
        expect(map.size).toBeLessThanOrEqual(20)
        // Three shares fit, so that an owner within its share never loses anything.
        if (own.size <= 5 && own.size > 0) {
          for (const each of own) expect(map.get(owner, String(each))).toBe(each)
        }
        if (own.size > 5)
          set.set(
            owner,
            new Set([...own].filter((each) => map.get(owner, String(each)) !== undefined)),
          )
      }
    }),
  )
})
