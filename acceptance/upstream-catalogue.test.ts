import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { startScriptedUpstream } from '@gatehouse/tools/scripted-upstream/server'
import { afterAll, expect, test } from 'vitest'

import { ask, begin } from './support/stream-call.ts'
import { catalogueOf } from './support/stream-models.ts'
import { useStack } from './support/use-stack.ts'

// The catalogue can change while calls run: those go on, new ones see the new one, and a bad one changes nothing.

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

const lookedAtAgain = { timeout: 6000, interval: 200 }

async function isStale(): Promise<number> {
  const text = await (await fetch(stack().description.metrics_urls[0] ?? '')).text()
  return Number(text.match(/^gatehouse_catalogue_stale (\d)$/m)?.[1])
}

test('streams that run go on over a change of the catalogue, and new calls see the new one', async () => {
  const script = { tokens: 60, paceMs: 100 }
  const running = ['before', 'both'].map((model) =>
    begin(target(), { format: 'messages', model, script }),
  )
  await Promise.all(running.map(({ answered }) => answered))
  await replace(JSON.stringify(after))
  await expect.poll(() => statusOf('after'), lookedAtAgain).toBe(200)
  expect([await statusOf('before'), await statusOf('both')]).toEqual([400, 200])
  for (const { chunks } of running)
    expect(chunks.map(({ text }) => text).join('')).not.toContain('message_stop')
  for (const { heard } of running) {
    const { text, isBroken } = await heard
    expect(isBroken).toBe(false)
    expect(text.match(/text_delta/g)).toHaveLength(60)
    expect(text).toContain('message_stop')
  }
})

test('a catalogue that cannot be used leaves the last good one in force, and is reported', async () => {
  await replace(JSON.stringify(after))
  await expect.poll(() => statusOf('after'), lookedAtAgain).toBe(200)
  expect(await isStale()).toBe(0)
  const names = {
    ...before,
    models: [{ ...before.models[0], upstreams: [{ upstream: 'nobody' }] }],
  }
  for (const spoil of [() => replace(JSON.stringify(names)), () => rm(stack().modelsFile)]) {
    await spoil()
    await expect.poll(isStale, lookedAtAgain).toBe(1)
    expect([await statusOf('after'), await statusOf('before')]).toEqual([200, 400])
    await replace(JSON.stringify(after))
    await expect.poll(isStale, lookedAtAgain).toBe(0)
  }
  const log = await readFile(join(stack().folder, 'api-1.log'), 'utf8')
  expect(log.match(/the model catalogue cannot be used/g)).toHaveLength(2)
})
