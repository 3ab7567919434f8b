import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { expect, onTestFinished, test } from 'vitest'

import { createMetrics } from '#platform/metrics.ts'
import { silentLog } from '#testing/silent-log.ts'

import { createModeration } from './create-moderation.ts'
import { createScorerDouble } from './testing/scorer-double.ts'

/** No organization has a guardrail here. */
const tenantEgress = { request: () => Promise.reject(new Error('no webhook is called')) }

test('a changed file changes the scorers, and a call that has begun keeps its own', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'moderation-'))
  const file = join(folder, 'moderation.json')
  const write = async (contents: object) => {
    await writeFile(`${file}.new`, JSON.stringify(contents))
    await rename(`${file}.new`, file)
  }
  const double = await createScorerDouble()
  const scorer = { name: 'openai', adapter: 'openai', base_url: double.baseUrl, model: 'omni' }
  await write({ scorers: [{ name: 'scripted', adapter: 'scripted' }] })
  const moderation = createModeration({
    file,
    allowsTestDoubles: true,
    readSecret: () => '',
    now: () => new Date(),
    steadyNow: () => new Date(performance.now()),
    log: silentLog,
    metrics: createMetrics(),
    tenantEgress,
    everyMs: 5,
  })
  onTestFinished(async () => {
    await moderation.stop()
    await double[Symbol.asyncDispose]()
    await rm(folder, { recursive: true })
  })
  const before = moderation.current()
  await write({ scorers: [scorer], degraded: 'allow' })
  await waitUntil(() => moderation.current() !== before)
  const after = moderation.current()
  expect([before.settings.degraded, after.settings.degraded]).toEqual(['refuse', 'allow'])

  const text = [{ role: 'user', text: '[[cat:hate=0.9]]' }] as const
  const call = { signal: new AbortController().signal, organizationId: 'org_1' }
  for (const each of [before, after]) {
    const { segments } = await each.score(text, new Set(['hate']), call)
    expect(segments[0]?.reached).toEqual(['hate'])
  }
  expect(double.calls).toHaveLength(1)
})

test('the local scorer does not score again what it has scored', async () => {
  const metrics = createMetrics()
  const moderation = createModeration({
    file: undefined,
    allowsTestDoubles: false,
    readSecret: () => '',
    now: () => new Date(),
    steadyNow: () => new Date(performance.now()),
    log: silentLog,
    metrics,
    tenantEgress,
  })
  onTestFinished(() => moderation.stop())
  const call = { signal: new AbortController().signal, organizationId: 'org_1' }
  const history = { role: 'user', text: 'What was said before.' } as const
  const [first] = await moderation.local.score([history], call)
  const [again] = await moderation.local.score([history, { ...history, text: 'New.' }], call)
  expect(again).toEqual(first)
  const lookups = (await metrics.scoreLookups.get()).values
  expect(lookups.map(({ labels, value }) => [labels.result, value])).toEqual([
    ['unknown', 2],
    ['known', 1],
  ])
})
