import { expect, test } from 'vitest'

import { createBodyBudget } from './body-budget.ts'

const mb = 1024 * 1024
const kb = 1024

test('an organization gets a quarter of the memory, and others get theirs', () => {
  const budget = createBodyBudget(256 * mb)
  const uploads = Array.from({ length: 3 }, () => budget.open('greedy', 10)!)
  expect(uploads.map((upload) => upload.grow(31 * mb))).toEqual([true, true, false])
  expect(budget.open('other', 10)!.grow(31 * mb)).toBe(true)
  expect(budget.open('greedy', 10)!.grow(60 * kb)).toBe(true)
  uploads[0]!.release()
  expect(uploads[2]!.grow(31 * mb)).toBe(true)
})

test('large bodies of many organizations leave room for small ones', () => {
  const budget = createBodyBudget(256 * mb)
  const large = Array.from({ length: 20 }, (_, index) => budget.open(`org_${index}`, 1)!)
  expect(large.filter((upload) => upload.grow(31 * mb))).toHaveLength(7) // 217 of 224 MB
  const small = Array.from({ length: 500 }, (_, index) => budget.open(`small_${index}`, 1)!)
  expect(small.every((upload) => upload.grow(64 * kb))).toBe(true)
  // It was small until now; as a large one it finds no room, and keeps what it has.
  expect(small[0]!.grow(8 * mb)).toBe(false)
  expect(budget.usedBytes()).toBe(7 * 31 * mb + 500 * 64 * kb)
})

test('the small bodies of an organization with many readers get a quarter of the memory too', () => {
  const budget = createBodyBudget(256 * mb)
  const small = Array.from({ length: 4096 }, () => budget.open('org', 4096)!)
  expect(small.filter((each) => each.grow(64 * kb))).toHaveLength(1024)
  expect(budget.open('other', 1)!.grow(64 * kb)).toBe(true)
})

test('an organization has a limited number of readers; a released one makes room for another', () => {
  const budget = createBodyBudget(256 * mb)
  const readers = [budget.open('org', 2), budget.open('org', 2)]
  expect(budget.open('org', 2)).toBeNull()
  expect(budget.open('other', 2)).not.toBeNull()
  readers[0]?.release()
  readers[0]?.release() // a second time changes nothing
  expect(budget.open('org', 2)).not.toBeNull()
  expect(budget.open('org', 2)).toBeNull()
})

test('what is released is free again, whatever grew in between', () => {
  const budget = createBodyBudget(256 * mb)
  const reservations = Array.from({ length: 50 }, (_, index) =>
    budget.open(`org_${index % 7}`, 50)!,
  )
  for (const bytes of [10, 70 * kb, 2 * mb]) for (const each of reservations) each.grow(bytes)
  expect(budget.usedBytes()).toBe(50 * 2 * mb)
  for (const each of reservations) each.release()
  expect(budget.usedBytes()).toBe(0)
  expect(budget.open('org_0', 1)!.grow(64 * mb)).toBe(true)
})
