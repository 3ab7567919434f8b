import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { brotliCompressSync, gzipSync } from 'node:zlib'

import { expect, onTestFinished, test } from 'vitest'

import { createServer } from '#http/server.ts'
import { createTestApi } from '#testing/test-api.ts'

import { serveConsole } from './serve-console.ts'

const script = 'export const answer = 42\n'.repeat(40)
const html = 'text/html; charset=utf-8'
const listed = [
  { path: 'index.html', type: html, codings: [] },
  { path: 'assets/index-1.js', type: 'text/javascript', codings: ['br', 'gzip'] },
]

/** A server with a console of two files, and one file that is not on its list. */
async function start({ isOn = true } = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'console-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await mkdir(join(folder, 'assets'))
  const write = (name: string, text: string | Buffer) => writeFile(join(folder, name), text)
  await write('files.json', JSON.stringify(listed))
  await write('index.html', '<!doctype html>')
  await write('assets/index-1.js', script)
  await write('assets/index-1.js.br', brotliCompressSync(script))
  await write('assets/unlisted.js', script)
  const { house } = await createTestApi()
  const app = createServer({ ...house, trustedProxies: [], connectionsMax: 10 })
  onTestFinished(() => app.close())
  serveConsole(app, isOn, pathToFileURL(`${folder}/`))
  const get = (url: string, coding = '') =>
    app.inject({ method: 'GET', url, headers: { 'accept-encoding': coding } })
  return { get, write }
}

test('200: a path that names no file is the index, which is not stored', async () => {
  const { get } = await start()
  for (const url of ['/console/', '/console/projects/proj_1', '/console/files.json']) {
    const { statusCode, body, headers } = await get(url, 'br')
    expect([url, statusCode, body, headers['cache-control']]).toEqual([
      url,
      200,
      '<!doctype html>',
      'no-store',
    ])
    expect(headers['content-encoding']).toBeUndefined()
  }
})

test('200: a file is sent as it was compressed, and kept for a year', async () => {
  const { get } = await start()
  const { rawPayload, headers } = await get('/console/assets/index-1.js', 'gzip, br')
  expect(rawPayload.equals(brotliCompressSync(script))).toBe(true)
  expect(headers).toMatchObject({
    'content-encoding': 'br',
    vary: 'accept-encoding',
    'cache-control': 'public, max-age=31536000, immutable',
  })
  expect((await get('/console/assets/index-1.js')).body).toBe(script)
})

test('404: a file that is not on the list, also when it is there', async () => {
  const { get } = await start()
  expect((await get('/console/assets/unlisted.js')).statusCode).toBe(404)
  expect((await get('/console/assets/index-1.js.br')).statusCode).toBe(404)
})

test('a file that could not be read is read at the next request', async () => {
  const { get, write } = await start()
  expect((await get('/console/assets/index-1.js', 'gzip')).statusCode).toBe(500)
  await write('assets/index-1.js.gz', gzipSync(script))
  expect((await get('/console/assets/index-1.js', 'gzip')).statusCode).toBe(200)
})

test('404: a console that is switched off has no page and no file', async () => {
  const { get } = await start({ isOn: false })
  for (const url of ['/console', '/console/', '/console/assets/index-1.js']) {
    expect((await get(url)).statusCode).toBe(404)
  }
})
