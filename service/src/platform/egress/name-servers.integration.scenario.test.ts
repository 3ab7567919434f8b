import { expect, test } from 'vitest'

import { createAddressFinder } from './find-addresses.ts'
import { type Answer, startNameServer } from './testing/name-server.ts'

// What `createAddressFinder` makes of the answers of name servers, over a real socket.

/** Every question for A has one answer and every question for AAAA another. */
async function askServer(a: Answer, aaaa: Answer) {
  using server = await startNameServer(({ isV4 }) => (isV4 ? a : aaaa))
  return await createAddressFinder(server.resolver)('name.example.com')
}

const public4 = Buffer.from([93, 184, 215, 14])
const private4 = Buffer.from([10, 0, 0, 1])
const loopback6 = Buffer.from([...Array<number>(15).fill(0), 1])

test('the addresses of both families are found', async () => {
  const found = await askServer([public4, private4], [loopback6])
  expect(found.toSorted()).toEqual(['10.0.0.1', '93.184.215.14', '::1'])
})

test.each([
  [[public4], [], ['93.184.215.14']],
  [[public4], 'missing', ['93.184.215.14']],
  [[], [loopback6], ['::1']],
  [[], [], []],
  ['missing', 'missing', []],
] as const)('a family that is missing has no addresses: %j and %j', async (a, aaaa, addresses) => {
  expect(await askServer(a, aaaa)).toEqual(addresses)
})

test.each([
  [[public4], 'failed'],
  ['failed', [loopback6]],
] as const)('a family that cannot be asked for is a failure: %j and %j', async (a, aaaa) => {
  await expect(askServer(a, aaaa)).rejects.toThrow(/SERVFAIL/)
})
