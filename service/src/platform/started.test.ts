import { expect, test } from 'vitest'

import { started } from './started.ts'

function watched(items: readonly number[], log: string[]) {
  return (async function* () {
    try {
      yield* items
    } finally {
      log.push('closed')
    }
  })()
}

test('all items are passed on in order', async () => {
  const seen: number[] = []
  for await (const item of await started(watched([1, 2, 3], []))) seen.push(item)
  expect(seen).toEqual([1, 2, 3])
})

test('the source can be closed before the first item is read', async () => {
  const log: string[] = []
  const items = await started(watched([1, 2], log))
  await items.return?.()
  expect(log).toEqual(['closed'])
})

test('a failure before the first item rejects at once', async () => {
  const broken = (async function* () {
    yield await Promise.reject<number>(new Error('early'))
  })()
  await expect(started(broken)).rejects.toThrow('early')
})
