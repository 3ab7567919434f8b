import { request as httpRequest } from 'node:http'

import { createProject } from '@gatehouse/contract/project'
import { type Stack, startStack } from '@gatehouse/tools/start-stack'
import { expect, onTestFinished, test } from 'vitest'

// SIGTERM: no request that has begun is lost, new ones are no longer taken, the exit code is 0.

async function openStack(environment: Record<string, string>): Promise<Stack> {
  const stack = await startStack({ environment })
  onTestFinished(() => stack.stop())
  return stack
}

/** A request whose head has arrived and whose body has not; `finish` sends the rest. */
function begin({ description }: Stack, name: string) {
  const body = JSON.stringify({ name })
  const request = httpRequest(`${description.base_url}${createProject.path}`, {
    method: 'POST',
    agent: false,
    headers: {
      authorization: `Bearer ${description.admin_key}`,
      'content-type': 'application/json',
      'content-length': body.length,
    },
  })
  const status = new Promise<number>((resolve, reject) => {
    request.once('error', reject)
    request.once('response', (response) => {
      response.resume().once('end', () => resolve(response.statusCode ?? 0))
    })
  })
  const opened = new Promise<void>((resolve) => {
    request.once('socket', (socket) => socket.once('connect', () => resolve()))
  })
  request.write(body.slice(0, 5))
  return { opened, status, finish: () => request.end(body.slice(5)) }
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

test('SIGTERM during 100 open requests loses none of them', async () => {
  const stack = await openStack({ CONNECTIONS_MAX: '200' })
  const requests = Array.from({ length: 100 }, (_, index) => begin(stack, `open ${index}`))
  await Promise.all(requests.map(({ opened }) => opened))
  await pause(200)
  const [api] = stack.apis
  const exit = new Promise<number | null>((resolve) => api?.child.once('exit', resolve))
  api?.child.kill('SIGTERM')
  await pause(500)
  await expect(fetch(`${stack.description.base_url}/health/live`)).rejects.toThrow('fetch failed')
  for (const { finish } of requests) {
    finish()
    await pause(5)
  }
  const statuses = await Promise.all(requests.map(({ status }) => status))
  expect(statuses.filter((status) => status === 201)).toHaveLength(100)
  expect(await exit).toBe(0)
})

test('it says that it is not ready before it stops listening, and ends within its deadline', async () => {
  const stack = await openStack({ UNREADY_SECONDS: '2', DRAIN_SECONDS: '1' })
  const { base_url, metrics_urls } = stack.description
  const stuck = begin(stack, 'never finished')
  stuck.status.catch(() => undefined)
  await stuck.opened
  const [api] = stack.apis
  const exit = new Promise<number | null>((resolve) => api?.child.once('exit', resolve))
  const startedAt = performance.now()
  api?.child.kill('SIGTERM')
  await pause(300)
  expect((await fetch(`${base_url}/health/ready`)).status).toBe(503)
  expect((await fetch(`${base_url}/health/live`)).status).toBe(200)
  const detail = await fetch((metrics_urls[0] ?? '').replace('/metrics', '/health/ready'))
  expect(await detail.json()).toEqual({ status: 'unavailable', reasons: ['draining'] })
  expect(await exit).toBe(0)
  expect(performance.now() - startedAt).toBeLessThan(5000)
})

test('a second SIGTERM ends it at once', async () => {
  const stack = await openStack({ UNREADY_SECONDS: '60' })
  const [api] = stack.apis
  const exit = new Promise<number | null>((resolve) => api?.child.once('exit', resolve))
  api?.child.kill('SIGTERM')
  await pause(300)
  api?.child.kill('SIGTERM')
  expect(await exit).toBe(1)
})
