import { createSecretKey, randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import { createTrustedFiles } from '#platform/trusted-file.ts'
import { silentLog } from '#testing/silent-log.ts'
import { createTestClock } from '#testing/test-gateway.ts'

import { keyDependsOn } from './authenticate-key.ts'
import type { FoundKey } from './credential-store.ts'
import { keepKeysOnDisk } from './keep-keys-on-disk.ts'
import { createLookupCache } from './lookup-cache.ts'

const outageMs = 600_000

const found: FoundKey = {
  id: 'key_1',
  organization_id: 'org_1',
  project_id: null,
  kind: 'admin',
  key_hash: randomBytes(32),
  hash_version: 1,
  permissions: ['policies.read'],
  expires_at: new Date('2027-01-01'),
  revoked_at: null,
  member_id: null,
  member_status: null,
  member_project_role: null,
  organization_status: 'active',
  plan: 'free',
  paid_micro_usd: '0',
  project_status: null,
  project_name: null,
  limit_overrides: null,
  monthly_budget: { credits: 5, alert_percents: [80], hard_stop: true },
  project_budget: null,
  allowed_models: ['small', 'large'],
  project_labels: { team: 'search' },
}

/** Processes that share a folder, one after the other. */
async function setUp() {
  const directory = await mkdtemp(join(tmpdir(), 'gatehouse-keys-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const clock = createTestClock()
  const files = createTrustedFiles({
    directory,
    ...clock,
    keys: [createSecretKey(randomBytes(32))],
  })
  const start = () => {
    const cache = createLookupCache<FoundKey>({ ...clock, outageMs, dependsOn: keyDependsOn })
    return { cache, kept: keepKeysOnDisk({ cache, files, outageMs, log: silentLog }) }
  }
  return { clock, files, start }
}

test('the next process restores the cached keys with their age', async () => {
  const { clock, start } = await setUp()
  const first = start()
  await first.cache.get('hash', async () => found)
  await first.kept.stop()
  clock.pass(1000)
  const second = start()
  await expect.poll(() => second.cache.peek('hash')).toEqual(found)
  expect(second.cache.entries()).toEqual(first.cache.entries())
})

test('limits that were set are restored with their key', async () => {
  const { start } = await setUp()
  const limited = { ...found, limit_overrides: { key: { requests_per_minute: 5 } } }
  const first = start()
  await first.cache.get('hash', async () => limited)
  await first.kept.stop()
  const second = start()
  await expect.poll(() => second.cache.peek('hash')).toEqual(limited)
})

test('a copy older than the outage time is not read', async () => {
  const { clock, start } = await setUp()
  const first = start()
  await first.cache.get('hash', async () => found)
  await first.kept.stop()
  clock.pass(outageMs)
  const second = start()
  await second.kept.stop()
  expect(second.cache.entries()).toEqual([])
})

test('a forgotten key does not come back, also when the cache is empty', async () => {
  const { start } = await setUp()
  const first = start()
  await first.cache.get('hash', async () => found)
  await first.kept.stop()
  const second = start()
  await expect.poll(() => second.cache.peek('hash')).toEqual(found)
  second.cache.forget(found.id)
  second.kept.onForgotten()
  await new Promise((resolve) => setTimeout(resolve, 700))
  // The process is killed here: nothing more is written.
  const third = start()
  await third.kept.stop()
  expect(third.cache.entries()).toEqual([])
})

test('a key whose models the file does not name is not restored, as in files of earlier releases', async () => {
  const { clock, files, start } = await setUp()
  const { allowed_models: _, ...earlier } = {
    ...found,
    key_hash: found.key_hash.toString('base64'),
  }
  const loadedAtMs = clock.now().getTime()
  const newer = { ...earlier, id: 'key_2', allowed_models: null }
  const values = { hash: earlier, other: newer }
  const keys = Object.entries(values).map(([name, value]) => ({ name, loadedAtMs, value }))
  await files.keep('keys', JSON.stringify(keys))
  const { cache } = start()
  await expect.poll(() => cache.peek('other')).toMatchObject({ id: 'key_2', allowed_models: null })
  expect(cache.peek('hash')).toBe(undefined)
})

test('the file has the newest keys whose lists of models are not too long together', async () => {
  const { start } = await setUp()
  const allowed_models = Array.from({ length: 500 }, (_, index) => `model-${index}`)
  const first = start()
  for (let each = 0; each < 401; each++) {
    await first.cache.get(`hash ${each}`, async () => ({ ...found, allowed_models }))
  }
  await first.kept.stop()
  const second = start()
  await second.kept.stop()
  expect(second.cache.entries()).toHaveLength(400)
  expect(second.cache.peek('hash 0')).toBe(undefined)
})
