import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { startScriptedUpstream } from '@gatehouse/tools/scripted-upstream/server'
import { afterAll, expect, test } from 'vitest'

import { ask, begin } from './support/streams/call.ts'
import { catalogueOf } from './support/streams/models.ts'
import { useStack } from './support/use-stack.ts'

// The catalogue can change while calls run: running calls continue, new calls use the new catalogue, and an invalid one
// changes nothing.

const [old, fresh] = await Promise.all([startScriptedUpstream(), startScriptedUpstream()])
afterAll(() => Promise.all([old.stop(), fresh.stop()]))

const before = catalogueOf({ before: [{ url: old.url }], both: [{ url: old.url }] })
const after = catalogueOf({ after: [{ url: fresh.url }], both: [{ url: fresh.url }] })
const stack = useStack({ models: () => before })

const target = () => {
  const { base_url: baseUrl, project_key: credential } = stack().description
  return { baseUrl, credential }
}
const statusOf = async (model: string) =>
  (await ask(target(), { format: 'messages', model })).status
const replace = (text: string) => writeFile(stack().modelsFile, text)

const untilReloaded = { timeout: 6000, interval: 200 }

async function readStale(): Promise<number> {
  const text = await (await fetch(stack().description.metrics_urls[0] ?? '')).text()
  return Number(text.match(/^gatehouse_catalogue_stale (\d)$/m)?.[1])
}

test('running streams continue across a change of the catalogue, and new calls use the new one', async () => {
  const script = { tokens: 60, paceMs: 100 }
  const running = ['before', 'both'].map((model) =>
    begin(target(), { format: 'messages', model, script }),
  )
  await Promise.all(running.map(({ responseStarted }) => responseStarted))
  await replace(JSON.stringify(after))
  await expect.poll(() => statusOf('after'), untilReloaded).toBe(200)
  expect([await statusOf('before'), await statusOf('both')]).toEqual([404, 200])
  for (const { chunks } of running)
    expect(chunks.map(({ text }) => text).join('')).not.toContain('message_stop')
  for (const { answer } of running) {
    const { text, isBroken } = await answer
    expect(isBroken).toBe(false)
    expect(text.match(/text_delta/g)).toHaveLength(60)
    expect(text).toContain('message_stop')
  }
})

test('an invalid or missing catalogue leaves the last good one in force, and is reported', async () => {
  await replace(JSON.stringify(after))
  await expect.poll(() => statusOf('after'), untilReloaded).toBe(200)
  expect(await readStale()).toBe(0)
  const names = {
    ...before,
    models: [{ ...before.models[0], upstreams: [{ upstream: 'nobody' }] }],
  }
  for (const spoil of [() => replace(JSON.stringify(names)), () => rm(stack().modelsFile)]) {
    await spoil()
    await expect.poll(readStale, untilReloaded).toBe(1)
    expect([await statusOf('after'), await statusOf('before')]).toEqual([200, 404])
    await replace(JSON.stringify(after))
    await expect.poll(readStale, untilReloaded).toBe(0)
  }
  const log = await readFile(join(stack().folder, 'api-1.log'), 'utf8')
  expect(log.match(/catalogue_unusable/g)).toHaveLength(2)
})
