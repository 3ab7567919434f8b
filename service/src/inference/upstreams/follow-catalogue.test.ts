import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { expect, onTestFinished, test } from 'vitest'

import { upstreamFormats } from '#formats/formats.ts'
import { createLog } from '#platform/log.ts'
import { createMetrics } from '#platform/metrics.ts'
import { silentLog } from '#testing/silent-log.ts'

import { followCatalogue } from './follow-catalogue.ts'

const fileWith = (id: string, keyFile: string) =>
  JSON.stringify({
    upstreams: { first: { kind: 'openai', base_url: 'http://a/v1', key: { file: keyFile } } },
    models: [
      {
        id,
        context_tokens: 10,
        max_output_tokens: 10,
        prices: { input: '1', output: '1' },
        upstreams: [{ upstream: 'first' }],
      },
    ],
  })

async function follow() {
  const folder = await mkdtemp(join(tmpdir(), 'catalogue-'))
  const [file, keyFile] = [join(folder, 'models.json'), join(folder, 'key')]
  await writeFile(keyFile, 'first-secret\n')
  await writeFile(file, fileWith('one', keyFile))
  const lines: string[] = []
  const log = createLog('info', { write: (line) => lines.push(line) })
  const options = {
    file,
    formats: upstreamFormats,
    environment: {},
    log,
    metrics: createMetrics(),
    onChange: () => {},
  }
  const followed = followCatalogue({ ...options, everyMs: 5 })
  onTestFinished(async () => {
    followed.stop()
    await rm(folder, { recursive: true })
  })
  const ids = () => followed.current().models.map(({ id }) => id)
  const secret = () => followed.current().upstreams[0]?.secret
  return { file, keyFile, lines, ids, secret, options }
}

test('a changed file is in force within moments, without a restart', async () => {
  const { file, keyFile, ids } = await follow()
  expect(ids()).toEqual(['one'])
  await writeFile(file, fileWith('two', keyFile))
  await waitUntil(() => ids()[0] === 'two')
})

test('a secret that changes in its file is in force too, and is never logged', async () => {
  const { keyFile, lines, secret } = await follow()
  expect(secret()).toBe('first-secret')
  await writeFile(keyFile, 'second-secret')
  await waitUntil(() => secret() === 'second-secret')
  expect(lines.join('')).not.toContain('secret')
})

test('a file that cannot be used leaves the last good one in force, says so once, and recovers', async () => {
  const { file, keyFile, lines, ids } = await follow()
  // Renamed into place: a file that is being written is empty for a moment, which is another problem.
  await writeFile(`${file}.new`, '{ "models": ')
  await rename(`${file}.new`, file)
  await waitUntil(() => lines.length > 0)
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(lines.length).toBe(1)
  expect(ids()).toEqual(['one'])
  await rm(file)
  await waitUntil(() => lines.length === 2)
  expect(ids()).toEqual(['one'])
  await writeFile(file, fileWith('one', keyFile))
  await writeFile(file, fileWith('three', keyFile))
  await waitUntil(() => ids()[0] === 'three')
})

test('a key file that goes away is reported once with its upstream, and the last key stays', async () => {
  const { keyFile, lines, secret } = await follow()
  await rm(keyFile)
  await waitUntil(() => lines.length > 0)
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(lines).toHaveLength(1)
  expect(lines[0]).toContain('catalogue_unusable')
  expect(lines[0]).toContain(`upstreams.first.key: the file ${keyFile} cannot be read (ENOENT)`)
  expect(secret()).toBe('first-secret')
  // Renamed into place: a file that is being written is empty for a moment.
  await writeFile(`${keyFile}.new`, 'first-secret')
  await rename(`${keyFile}.new`, keyFile)
  await waitUntil(() => lines.length === 2)
  expect(lines[1]).toContain('catalogue_changed')
})

test('a process does not start with a bad file, an absent one or an absent secret', async () => {
  const { file, keyFile, options } = await follow()
  await rm(keyFile)
  expect(() => followCatalogue(options)).toThrow(
    `Bad model catalogue in MODELS_FILE (${file}):\n  upstreams.first.key: the file ${keyFile} cannot be read (ENOENT)`,
  )
  await writeFile(file, '[]')
  expect(() => followCatalogue(options)).toThrow('Bad model catalogue in MODELS_FILE')
  await rm(file)
  expect(() => followCatalogue(options)).toThrow('ENOENT')
})

test('without a file there are no models', () => {
  const log = silentLog
  const followed = followCatalogue({
    file: undefined,
    formats: upstreamFormats,
    environment: {},
    log,
    metrics: createMetrics(),
    onChange: () => {},
  })
  expect(followed.current().models).toEqual([])
})
