import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import { createTenants } from '@gatehouse/tools/start-stack'
import { expect, test } from 'vitest'

import { begin } from './support/streams/call.ts'
import { residentMegabytes } from './support/streams/flood.ts'
import { useStack } from './support/use-stack.ts'

// Bodies that are sent in order to fill the memory of a process.

const stack = useStack({ processes: 1 })

const mb = 1024 * 1024

async function prepare() {
  const [tenant, neighbour] = await createTenants(stack().service, 2)
  const { base_url: baseUrl } = stack().description
  const { hostname, port } = new URL(baseUrl)
  const credential = neighbour?.project_key ?? ''
  const callNeighbour = async () =>
    (await begin({ baseUrl, credential }, { format: 'messages', model: 'claude-scripted' }).answer)
      .status
  // Warm-up: the memory that the first calls need is not counted.
  for (let call = 0; call < 5; call++) await callNeighbour()
  const processId = stack().apis[0]?.child.pid
  const before = await residentMegabytes(processId)
  return {
    callNeighbour,
    grownMegabytes: async () => (await residentMegabytes(processId)) - before,
    open(header: string): Socket {
      const socket = connect(Number(port), hostname)
      socket.on('error', () => undefined)
      socket.write(
        `POST /v1/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${tenant?.project_key}\r\n` +
          `content-type: application/json\r\n${header}\r\n\r\n`,
      )
      return socket
    },
  }
}

/** The status of the answer; undefined while there is none. */
function watchStatus(socket: Socket) {
  let text = ''
  socket.on('data', (chunk) => (text += chunk.toString()))
  return () => /^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]
}

test('48 uploads of 31 MiB that stop one byte early: most are refused, and memory stays within its bounds', async () => {
  const { open, callNeighbour, grownMegabytes } = await prepare()
  const size = 31 * mb
  const uploads = Array.from({ length: 48 }, () => open(`content-length: ${size}`))
  const statuses = uploads.map(watchStatus)
  const piece = Buffer.alloc(mb, ' ')
  await Promise.all(
    uploads.map(async (socket, index) => {
      const isGoingOn = () => socket.writable && statuses[index]?.() === undefined
      for (let sent = 0; sent < size - 1 && isGoingOn(); sent += piece.length) {
        const rest = piece.subarray(0, Math.min(piece.length, size - 1 - sent))
        if (!socket.write(rest)) await Promise.race([drained(socket), sleep(2000)])
      }
    }),
  )
  await sleep(1000)
  const grown = await grownMegabytes()
  const refused = statuses.filter((status) => status() !== undefined)
  console.log(`grew by ${grown.toFixed(0)} MB; ${refused.length} of 48 refused`)
  expect(await callNeighbour()).toBe(200)
  for (const socket of uploads) socket.destroy()
  expect(refused.length).toBeGreaterThanOrEqual(40)
  for (const status of refused) expect(['429', '529']).toContain(status())
  expect(grown).toBeLessThan(250)
})

const drained = (socket: Socket) =>
  new Promise<void>((resolve) => {
    socket.once('drain', resolve)
    socket.once('close', () => resolve())
  })

test('a body in chunks of one byte takes little more memory than its bytes', async () => {
  const { open, callNeighbour, grownMegabytes } = await prepare()
  const socket = open('transfer-encoding: chunked')
  const chunks = Buffer.from('1\r\n \r\n'.repeat(10_000))
  for (let round = 0; round < 300; round++) {
    if (!socket.write(chunks)) await drained(socket)
  }
  const grown = await grownMegabytes()
  console.log(`three million chunks of one byte: grew by ${grown.toFixed(0)} MB`)
  expect(await callNeighbour()).toBe(200)
  socket.destroy()
  expect(grown).toBeLessThan(250)
})

test('408: an upload that stalls is refused after ten seconds', async () => {
  const { open } = await prepare()
  const socket = open('content-length: 1000000')
  const status = watchStatus(socket)
  const startedAt = performance.now()
  socket.write(' ')
  await expect.poll(status, { timeout: 60_000 }).toBe('408')
  expect(performance.now() - startedAt).toBeGreaterThan(9900)
  await expect.poll(() => socket.closed).toBe(true)
})
