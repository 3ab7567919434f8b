import { expect, test } from 'vitest'

import { within } from './deadline.ts'

const late = () => new Error('too late')

test('a result in time is returned, and an error is passed on', async () => {
  expect(await within(1000, late, () => Promise.resolve('done'))).toBe('done')
  await expect(within(1000, late, () => Promise.reject(new Error('own')))).rejects.toThrow('own')
})

test('work that takes too long is rejected, and its signal aborts', async () => {
  let heard: AbortSignal | undefined
  const endless = within(20, late, (signal) => {
    heard = signal
    return new Promise<never>(() => undefined)
  })
  await expect(endless).rejects.toThrow('too late')
  expect(heard?.aborted).toBe(true)
})
