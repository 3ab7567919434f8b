import { expect, test } from 'vitest'

import { followPages } from './page.ts'

/** A list of `count` items, served in pages of `size`. */
function listOf(count: number, size: number) {
  const asked: (string | undefined)[] = []
  const readPage = (after: string | undefined) => {
    asked.push(after)
    const start = after === undefined ? 0 : Number(after)
    const data = Array.from({ length: Math.min(size, count - start) }, (_, index) => ({
      id: String(start + index + 1),
    }))
    const has_more = start + size < count
    return Promise.resolve({
      data,
      has_more,
      first_id: data[0]?.id,
      last_id: data.at(-1)?.id ?? null,
    })
  }
  return { readPage, asked }
}

test('pages are joined into one list that knows its ends', async () => {
  const { readPage, asked } = listOf(5, 2)
  const answer = await followPages(readPage)
  expect(asked).toEqual([undefined, '2', '4'])
  expect(answer).toEqual({
    data: ['1', '2', '3', '4', '5'].map((id) => ({ id })),
    has_more: false,
    first_id: '1',
    last_id: '5',
  })
})

test('the walk ends at 10,000 items and says where to go on', async () => {
  const { readPage, asked } = listOf(10_500, 100)
  expect(await followPages(readPage)).toMatchObject({
    data: { length: 10_000 },
    has_more: true,
    last_id: '10000',
  })
  expect(asked.length).toBe(100)
})

test('a page that is empty and promises more ends the walk', async () => {
  const page = { data: [], has_more: true, last_id: 'x' }
  expect(await followPages(() => Promise.resolve(page))).toEqual(page)
})
