import { expect, test } from 'vitest'

import { sendAll } from './send-all.ts'

test('some are sent at once, and all in the end', async () => {
  const sent: number[] = []
  let [open, most] = [0, 0]
  await sendAll(
    Array.from({ length: 101 }, (_, number) => number),
    async (number) => {
      most = Math.max(most, ++open)
      await new Promise(setImmediate)
      open--
      sent.push(number)
    },
  )
  expect(sent).toHaveLength(101)
  expect(most).toBe(20)
})

test('after an error nothing more is sent, and it is thrown when all that was sent has ended', async () => {
  let [begun, ended] = [0, 0]
  const sending = sendAll(Array.from({ length: 50 }), async () => {
    const isFirst = begun++ === 0
    if (isFirst) throw new Error('lost')
    await new Promise(setImmediate)
    ended++
  })
  await expect(sending).rejects.toThrow('lost')
  expect([begun, ended]).toEqual([20, 19])
})
