import fc from 'fast-check'
import { expect, test } from 'vitest'

import { createFairLine } from './fair-line.ts'

/** Lets all of them wait, in this order: `a1` belongs to `a`. */
function lineOf(items: readonly string[], bounds = {}) {
  const line = createFairLine<string>(bounds)
  for (const item of items) line.add(ownerOf(item), item)
  return line
}
const ownerOf = (item: string) => item.slice(0, 1)

function takeAll(line: ReturnType<typeof lineOf>): string[] {
  const item = line.takeNext()
  return item === undefined ? [] : [item, ...takeAll(line)]
}

test('owners take turns, and the items of one keep their order', () => {
  const served = takeAll(lineOf(['a1', 'a2', 'a3', 'b1', 'c1', 'b2']))
  expect(served).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3'])
})

test('the owner that was served least recently is next, also after others came', () => {
  const line = lineOf(['a1', 'a2', 'b1', 'b2'])
  expect(line.takeNext()).toBe('a1')
  line.add('c', 'c1')
  expect(takeAll(line)).toEqual(['b1', 'a2', 'c1', 'b2'])
})

test('an owner can be served out of turn, and is the last from then on', () => {
  const line = lineOf(['a1', 'b1', 'b2'])
  expect([line.takeNext('b'), line.takeNext('z')]).toEqual(['b1', undefined])
  expect([line.owners(), line.items()]).toEqual([
    ['a', 'b'],
    ['a1', 'b2'],
  ])
})

test('what leaves the line is never served, and leaves its owner with the others of it', () => {
  const line = lineOf(['a1', 'a2', 'b1'])
  expect([line.remove('a', 'a1'), line.remove('a', 'a1'), line.remove('z', 'a1')]).toEqual([
    true,
    false,
    false,
  ])
  line.remove('b', 'b1')
  expect([line.size(), line.owners()]).toEqual([1, ['a']])
  expect(takeAll(line)).toEqual(['a2'])
})

test('what is put back is the first of its owner', () => {
  const line = lineOf(['a2', 'b1'])
  line.putBack('a', 'a1')
  expect(takeAll(line)).toEqual(['a1', 'b1', 'a2'])
})

test('one owner fills its own line, all of them the whole', () => {
  const line = lineOf(['a1', 'a2'], { waitingMax: 3, waitingOfOneMax: 2 })
  expect([line.fullFor('a'), line.fullFor('b')]).toEqual(['own', null])
  line.add('b', 'b1')
  expect([line.fullFor('a'), line.fullFor('b'), line.fullFor('c')]).toEqual(['own', 'all', 'all'])
  line.takeNext()
  expect([line.fullFor('a'), line.fullFor('b')]).toEqual([null, null])
})

test('while an owner waits, every other owner is served at most once before it', () => {
  const step = fc.oneof(fc.constantFrom('a', 'b', 'c', 'd'), fc.constant(null))
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const line = createFairLine<string>()
      /** By owner: who was served since it began to wait, or was served itself. */
      const servedBefore = new Map<string, Set<string>>()
      let number = 0
      for (const owner of steps) {
        if (owner !== null) {
          line.add(owner, `${owner}${number++}`)
          if (!servedBefore.has(owner)) servedBefore.set(owner, new Set())
          continue
        }
        const item = line.takeNext()
        if (item === undefined) continue
        const served = ownerOf(item)
        servedBefore.delete(served)
        for (const seen of servedBefore.values()) {
          expect(seen.has(served)).toBe(false)
          seen.add(served)
        }
        if (line.owners().includes(served)) servedBefore.set(served, new Set())
      }
      expect(line.size()).toBe(line.items().length)
    }),
  )
})
