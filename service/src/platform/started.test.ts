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

test('all items come, in their order', async () => {
  const seen: number[] = []
  for await (const item of await started(watched([1, 2, 3], []))) seen.push(item)
  expect(seen).toEqual([1, 2, 3])
})

test('whoever never begins to read can still close the source', async () => {
  const log: string[] = []
  const items = await started(watched([1, 2], log))
  await items.return?.()
  expect(log).toEqual(['closed'])
})

test('what fails before the first item fails at once', async () => {
  const broken = (async function* () {
    yield await Promise.reject<number>(new Error('early'))
  })()
  await expect(started(broken)).rejects.toThrow('early')
})
