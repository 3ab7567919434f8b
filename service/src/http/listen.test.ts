import { connect, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'

import Fastify from 'fastify'
import { expect, onTestFinished, test } from 'vitest'

import { listen, reservePort } from './listen.ts'

const settings = { host: 'HOST', port: 'PORT' }
const host = '127.0.0.1'

async function start(isBusy: boolean, port = 0) {
  const app = Fastify({ forceCloseConnections: true })
  app.get('/', () => ({ status: 'ok' }))
  onTestFinished(() => app.close())
  const url = await listen(app, { host, port, settings, isBusy })
  return { app, url, port: Number(new URL(url).port) }
}

/** How many turns it takes a server to accept a crowd. */
async function turnsToAccept(isBusy: boolean): Promise<number> {
  const { app, port } = await start(isBusy)
  let accepted = 0
  app.server.on('connection', () => accepted++)
  const crowd: Socket[] = Array.from({ length: 100 }, () => connect(port, host))
  onTestFinished(() => crowd.forEach((socket) => socket.destroy()))
  let turns = 0
  while (accepted < crowd.length) {
    await nextTurn()
    turns++
  }
  return turns
}

test.runIf(process.platform === 'linux')(
  'a busy server accepts many connections in a turn of the event loop',
  async () => {
    const [one, many] = [await turnsToAccept(false), await turnsToAccept(true)]
    expect(many).toBeLessThan(one / 3)
  },
)

test('every connection is served, and closing ends them all', async () => {
  const { app, url } = await start(true)
  const answers = await Promise.all(Array.from({ length: 50 }, () => fetch(url)))
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
  await app.close()
  await expect(fetch(url)).rejects.toThrow('fetch failed')
})

test('a port on which another program listens is refused, even if that program shares it', async () => {
  for (const isShared of [true, false]) {
    const { port } = await start(isShared)
    await expect(start(true, port)).rejects.toThrow('the port is already in use')
  }
})

test.runIf(process.platform === 'linux')(
  'servers that share a reserved port all serve on it, also those that come later',
  async () => {
    const reserved = await reservePort({ host, port: 0, settings })
    const serveAs = async (name: string) => {
      const app = Fastify({ forceCloseConnections: true })
      app.get('/', () => ({ name }))
      onTestFinished(() => app.close())
      const address = { host, port: reserved.port, settings, isBusy: true, isShared: true }
      return listen(app, address)
    }
    const url = await serveAs('one')
    await reserved.release()
    expect(await serveAs('two')).toBe(url)
    const names = await Promise.all(
      Array.from(
        { length: 100 },
        async () => (await fetch(url)).json() as Promise<{ name: string }>,
      ),
    )
    expect(new Set(names.map(({ name }) => name))).toEqual(new Set(['one', 'two']))
  },
)

test('a port on which another program listens cannot be reserved, even if that program shares it', async () => {
  for (const isShared of [true, false]) {
    const { port } = await start(isShared)
    await expect(reservePort({ host, port, settings })).rejects.toThrow(
      'the port is already in use',
    )
  }
})

test('a port that is reserved by its number is free for those that will listen on it', async () => {
  const free = await reservePort({ host, port: 0, settings })
  await free.release()
  const { port } = await reservePort({ host, port: free.port, settings })
  expect((await start(true, port)).port).toBe(free.port)
})
