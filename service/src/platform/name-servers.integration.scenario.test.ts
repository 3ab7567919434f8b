import { createSocket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'

import { expect, onTestFinished, test } from 'vitest'

import { createAddressFinder } from './egress.ts'

// What `createAddressFinder` makes of the answers of name servers, over a real socket.

const typeA = 1
const codes = { missing: 3, failed: 2 }
type Answer = readonly Buffer[] | keyof typeof codes

/** A name server that answers every question for A with one answer and every question for AAAA with another. */
async function askServer(a: Answer, aaaa: Answer) {
  const server = createSocket('udp4').on('message', (question, from) => {
    const type = question.readUInt16BE(question.indexOf(0, 12) + 1)
    server.send(answerTo(question, type, type === typeA ? a : aaaa), from.port, from.address)
  })
  await new Promise<void>((resolve) => server.bind(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const resolver = new Resolver({ timeout: 500, tries: 1 })
  resolver.setServers([`127.0.0.1:${server.address().port}`])
  return createAddressFinder(resolver)('name.example.com')
}

/** The header and the question again, then the records; 0xc00c refers to the name in the question. */
function answerTo(question: Buffer, type: number, answer: Answer): Buffer {
  const end = question.indexOf(0, 12) + 5
  const head = Buffer.from(question.subarray(0, end))
  const records = typeof answer === 'string' ? [] : answer
  head.writeUInt16BE(0x8180 | (typeof answer === 'string' ? codes[answer] : 0), 2)
  for (const [index, count] of [1, records.length, 0, 0].entries()) {
    head.writeUInt16BE(count, 4 + index * 2)
  }
  const written = records.map((data) => {
    const start = Buffer.alloc(12)
    for (const [index, value] of [0xc00c, type, 1, 0, 60, data.length].entries()) {
      start.writeUInt16BE(value, index * 2)
    }
    return Buffer.concat([start, data])
  })
  return Buffer.concat([head, ...written])
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
