import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

import { freePort } from '@gatehouse/tools/free-port'
import { scoresMarkedIn } from '@gatehouse/tools/testing/marked-scores'
import { afterAll } from 'vitest'

type DoubleOptions = { delayMs?: number; onCall?: (texts: readonly string[]) => void }

/**
 * A moderation endpoint as OpenAI has one. Texts say their scores themselves, as in `[[cat:hate=0.9]]`. It can be stopped, with
 * all of its connections, and started again at the same port. `onCall` is told which texts it is asked about.
 */
export async function startScorerDouble({ delayMs = 0, onCall }: DoubleOptions = {}) {
  const port = await freePort()
  let server: Server | undefined

  async function answer(request: IncomingMessage, response: ServerResponse) {
    const { input } = (await json(request)) as { input: readonly string[] }
    onCall?.(input)
    if (delayMs > 0) await sleep(delayMs)
    const results = input.map((text) => ({ flagged: false, category_scores: scoresMarkedIn(text) }))
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ id: 'modr-1', model: 'omni', results }))
  }
  async function start() {
    const next = createServer((request, response) => {
      answer(request, response).catch(() => response.destroy())
    })
    await new Promise<void>((resolve) => next.listen(port, '127.0.0.1', resolve))
    server = next
  }
  async function stop() {
    const last = server
    server = undefined
    last?.closeAllConnections()
    await new Promise((resolve) => (last ? last.close(resolve) : resolve(undefined)))
  }

  await start()
  afterAll(stop)
  return { baseUrl: `http://127.0.0.1:${port}/v1`, start, stop }
}

/** A MODERATION_FILE with these members, until the tests have ended. */
export async function writeModerationFile(file: object): Promise<Record<string, string>> {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-moderation-'))
  afterAll(() => rm(folder, { recursive: true }))
  const path = join(folder, 'moderation.json')
  await writeFile(path, JSON.stringify(file))
  return { MODERATION_FILE: path }
}
