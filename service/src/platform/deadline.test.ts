import { expect, test } from 'vitest'

import { within } from './deadline.ts'

const late = () => new Error('too late')

test('what is ready in time is returned, and a failure is passed on', async () => {
  expect(await within(1000, late, () => Promise.resolve('done'))).toBe('done')
  await expect(within(1000, late, () => Promise.reject(new Error('own')))).rejects.toThrow('own')
})

test('what takes too long is given up, and told so', async () => {
  let heard: AbortSignal | undefined
  const endless = within(20, late, (signal) => {
    heard = signal
    return new Promise<never>(() => undefined)
  })
  await expect(endless).rejects.toThrow('too late')
  expect(heard?.aborted).toBe(true)
})
