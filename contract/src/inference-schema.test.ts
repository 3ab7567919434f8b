import { expect, test } from 'vitest'
import { z } from 'zod'

import { AnyObject, listOf } from './inference-schema.ts'

test('a list is validated up to its first invalid item, however many follow', () => {
  let looks = 0
  const item = z.unknown().refine((value) => {
    looks++
    return value === 'good'
  })
  const result = listOf(item).safeParse(['good', ...Array(50_000).fill('bad')])
  expect(result.error?.issues.map(({ path }) => path)).toEqual([[1]])
  expect(looks).toBe(2)
})

test('a list has bounds, and its JSON Schema describes its items', () => {
  const list = listOf(z.string(), { min: 1 })
  expect(list.safeParse([]).success).toBe(false)
  expect(list.safeParse(Array(100_001).fill('a')).success).toBe(false)
  expect(z.toJSONSchema(list)).toMatchObject({ type: 'array', items: { type: 'string' } })
})

test.each([null, [], 'text', 1])('%j is no object', (value) => {
  expect(AnyObject.safeParse(value).success).toBe(false)
})
