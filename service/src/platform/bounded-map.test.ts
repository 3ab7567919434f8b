import { expect, test } from 'vitest'

import { BoundedMap } from './bounded-map.ts'

test('one entry too many drops the one that was set longest ago', () => {
  const dropped: [string, number][] = []
  const map = new BoundedMap<string, number>(2, (...entry) => dropped.push(entry))
  map.set('a', 1).set('b', 2).set('c', 3)
  expect([...map]).toEqual([
    ['b', 2],
    ['c', 3],
  ])
  expect(dropped).toEqual([['a', 1]])
})

test('setting a key again makes it the newest, and reading it does not', () => {
  const map = new BoundedMap<string, number>(2)
  map.set('a', 1).set('b', 2).set('a', 3)
  map.get('b')
  map.set('c', 4)
  expect([...map.keys()]).toEqual(['a', 'c'])
})
