import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'

import { expect, onTestFinished, test } from 'vitest'

import { systemClock } from '#platform/clock.ts'
import { createMetrics } from '#platform/metrics.ts'
import { silentLog } from '#testing/silent-log.ts'

import { createBodyBudget } from './body-budget.ts'
import { createOverload } from './overload/overload.ts'
import { createServer } from './server.ts'

async function listen() {
  const app = createServer({
    now: systemClock,
    log: silentLog,
    metrics: createMetrics(),
    docsUrl: undefined,
    responsesErrors: 'flat',
    trustedProxies: [],
    connectionsMax: 10,
    bodies: { budget: createBodyBudget(64 * 1024 * 1024), concurrencyOf: () => 10 },
    overload: createOverload(createMetrics()),
  })
  app.get('/answer', async () => 'answer')
  await app.listen({ port: 0, host: '127.0.0.1' })
  onTestFinished(() => app.close())
  const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  return { app, socket }
}

test('a connection that stays idle after an answer is closed', async () => {
  const { app, socket } = await listen()
  app.server.keepAliveTimeout = 50
  const closed = once(socket, 'close')
  socket.write('GET /answer HTTP/1.1\r\nhost: x\r\n\r\n')
  const [answer] = (await once(socket, 'data')) as [Buffer]
  expect(answer.toString()).toContain('200 OK')
  await closed
  expect(socket.bytesRead).toBe(answer.length)
})
