import { createSocket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'

const typeA = 1
const codes = { missing: 3, failed: 2 }
/** The data of the records, or how the name server fails. */
export type Answer = readonly Buffer[] | keyof typeof codes
type Question = { name: string; isV4: boolean }

/** A name server on a real socket, which never answers where it is given no answer; and a resolver that asks it. */
export async function startNameServer(answer: (question: Question) => Answer | undefined) {
  const asked: Question[] = []
  const server = createSocket('udp4').on('message', (message, from) => {
    const type = message.readUInt16BE(message.indexOf(0, 12) + 1)
    const question = { name: readName(message), isV4: type === typeA }
    asked.push(question)
    const given = answer(question)
    if (given) server.send(answerTo(message, type, given), from.port, from.address)
  })
  await new Promise<void>((resolve) => server.bind(0, '127.0.0.1', resolve))
  const resolver = new Resolver({ timeout: 500, tries: 1 })
  resolver.setServers([`127.0.0.1:${server.address().port}`])
  return { asked, resolver, [Symbol.dispose]: () => void server.close() }
}

/** The labels after the header, each behind its length. Resolvers may change the case of letters. */
function readName(message: Buffer): string {
  const labels: string[] = []
  for (let start = 12; message[start]; start += message.readUInt8(start) + 1) {
    labels.push(message.toString('latin1', start + 1, start + 1 + message.readUInt8(start)))
  }
  return labels.join('.').toLowerCase()
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
