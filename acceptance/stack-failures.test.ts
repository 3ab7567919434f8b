import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import { freePort } from '@gatehouse/tools/free-port'
import { whyNoLlama } from '@gatehouse/tools/llama-upstream/start'
import { startStack } from '@gatehouse/tools/start-stack'
import { type ThrowawayPostgres, startThrowawayPostgres } from '@gatehouse/tools/throwaway-postgres'
import pg from 'pg'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'

// A start of `./dev stack` that fails or is interrupted ends soon, says why, and leaves nothing behind. A
// PostgreSQL server for this file alone shows what is left, whatever else runs on the machine.

const root = fileURLToPath(new URL('../', import.meta.url))

let postgres: ThrowawayPostgres
beforeAll(async () => {
  postgres = await startThrowawayPostgres()
})
afterAll(() => postgres?.stop())

const scratchFolders = () => {
  try {
    return readdirSync(`${root}.scratch`).filter((name) => name.startsWith('stack-'))
  } catch {
    return []
  }
}
const foldersBefore = scratchFolders()

/** Processes that have an address of our own PostgreSQL in their environment, the stack itself aside. */
function serviceProcesses(): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(
        `DATABASE_URL=postgres://postgres@127.0.0.1:${postgres.port}/gatehouse_`,
      )
    } catch {
      return false
    }
  })
}

async function databases(): Promise<string[]> {
  const client = new pg.Client({ connectionString: postgres.url })
  await client.connect()
  const { rows } = await client.query<{ datname: string }>('select datname from pg_database')
  await client.end()
  return rows.map(({ datname }) => datname).filter((name) => name.startsWith('gatehouse_'))
}

async function expectNothingLeft(where = '') {
  await expect.poll(serviceProcesses, { message: where, timeout: 2000 }).toEqual([])
  expect(await databases(), where).toEqual([])
  expect(scratchFolders(), where).toEqual(foldersBefore)
}

/** A port that something listens on and never answers. */
async function silentPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

/** `./dev stack` in a process group of its own, as a terminal would start it. */
function spawnStack(args: readonly string[] = [], environment: Record<string, string> = {}) {
  const child = spawn(`${root}dev`, ['stack', '--json', ...args], {
    env: { ...process.env, TEST_DATABASE_URL: postgres.url, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const ended = new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) =>
    child.once('close', (code) => resolve({ code, stdout, stderr })),
  )
  return {
    ended,
    /** Ctrl-C in a terminal reaches the whole group; `kill` of a script one process. */
    interrupt: ({ isGroup = false } = {}) =>
      process.kill(isGroup ? -Number(child.pid) : Number(child.pid), 'SIGINT'),
    stdout: () => stdout,
    untilReady: async () => {
      await expect.poll(() => stdout, { timeout: 60_000, interval: 20 }).toContain('\n')
    },
  }
}

test('without the model file it names the file and the variable, before anything is started', async () => {
  const { ended } = spawnStack(['--upstream', 'llama'], {
    LLAMA_MODEL_PATH: '/nowhere/model.gguf',
  })
  expect(await ended).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(
      /^stack: The model file \/nowhere\/model\.gguf does not exist\. Set LLAMA_MODEL_PATH .*\n$/,
    ),
  })
  await expectNothingLeft()
})

test.skipIf(whyNoLlama(import.meta.filename))(
  'a model file that the engine cannot load ends the start with the engine’s reason',
  async () => {
    const notAModel = import.meta.filename
    const { code, stdout, stderr } = await spawnStack(['--upstream', 'llama'], {
      LLAMA_MODEL_PATH: notAModel,
    }).ended
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toContain(`stack: The llama upstream with the model ${notAModel} ended with`)
    await expectNothingLeft()
  },
)

test('PostgreSQL away: the address and the variable', async () => {
  const port = await freePort()
  const away = `postgres://postgres@127.0.0.1:${port}/postgres`
  const { code, stderr } = await spawnStack([], { TEST_DATABASE_URL: away }).ended
  expect(code).toBe(1)
  expect(stderr).toContain(`stack: PostgreSQL at 127.0.0.1:${port} cannot be used (`)
  expect(stderr).toContain('or set TEST_DATABASE_URL')
  await expectNothingLeft()
})

test('PostgreSQL that takes connections and never answers is given up within seconds', async () => {
  const port = await silentPort()
  const mute = `postgres://postgres@127.0.0.1:${port}/postgres`
  const { code, stderr } = await spawnStack([], { TEST_DATABASE_URL: mute }).ended
  expect(code).toBe(1)
  expect(stderr).toContain(`stack: PostgreSQL at 127.0.0.1:${port} cannot be used (timeout`)
})

test('Redis away: the address and the variable', async () => {
  const port = await freePort()
  const { code, stderr } = await spawnStack([], { TEST_REDIS_URL: `redis://127.0.0.1:${port}` })
    .ended
  expect(code).toBe(1)
  expect(stderr).toContain(`stack: Redis at 127.0.0.1:${port} cannot be used (`)
  expect(stderr).toContain('or set TEST_REDIS_URL')
  await expectNothingLeft()
})

test('a port that is taken ends the start with the reason', async () => {
  const environment = { PORT: String(await silentPort()) }
  await expect(startStack({ server: postgres.url, environment })).rejects.toThrow(
    /^The api process ended with exit code 1: gatehouse: Cannot listen on .*already in use/,
  )
  await expectNothingLeft()
})

test('a process that dies at its start ends the start, and the others with it', async () => {
  await expect(
    startStack({ server: postgres.url, program: 'no-such-program', processes: 2 }),
  ).rejects.toThrow(/^The api process ended with exit code 1: .*no-such-program/s)
  await expectNothingLeft()
})

test('PostgreSQL crashes during the start: it ends, and no process is left', async () => {
  const stack = spawnStack()
  await expect.poll(serviceProcesses, { timeout: 30_000, interval: 20 }).not.toEqual([])
  await postgres.crash()
  const { code, stdout } = await stack.ended
  await postgres.start()
  // Nothing can drop a database that is out of reach.
  for (const name of await databases()) await dropDatabase(name)
  expect([code, stdout]).toEqual([1, ''])
  await expectNothingLeft()
})

async function dropDatabase(name: string) {
  const client = new pg.Client({ connectionString: postgres.url })
  await client.connect()
  await client.query(`drop database ${name} with (force)`)
  await client.end()
}

/** An interrupted stack ends within this many times the duration of a complete start. */
const startsMax = 3

test('SIGINT at any moment of the start ends it and leaves nothing behind', async () => {
  const whole = spawnStack()
  const startedAt = performance.now()
  await whole.untilReady()
  const startMs = performance.now() - startedAt
  whole.interrupt()
  expect(await whole.ended).toMatchObject({ code: 0, stderr: '' })
  const moments = 6
  for (let moment = 1; moment <= moments; moment++) {
    const stack = spawnStack()
    await sleep((startMs * moment) / (moments + 1))
    const interruptedAt = performance.now()
    stack.interrupt({ isGroup: moment % 2 === 0 })
    const { code, stdout, stderr } = await stack.ended
    const where = `moment ${moment} of ${moments}: ${stderr}`
    expect((performance.now() - interruptedAt) / startMs, where).toBeLessThan(startsMax)
    // It may have become ready just before: then it stops as it always does.
    expect([where, code]).toEqual([where, stdout === '' ? expect.toSatisfy(isFailure) : 0])
    await expectNothingLeft(where)
  }
}, 300_000)

/** null: bash was still preparing, and the signal ended it before Node was there to handle it. */
const isFailure = (code: unknown) => code === null || code === 1

test('a second SIGINT does not wait for calls under way', async () => {
  const stack = spawnStack()
  const startedAt = performance.now()
  await stack.untilReady()
  const startMs = performance.now() - startedAt
  const { base_url, project_key } = JSON.parse(stack.stdout()) as Record<string, string>
  const content = `#script ${JSON.stringify({ tokens: 3000, paceMs: 20 })}`
  const response = await fetch(`${base_url}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': project_key ?? '', 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'claude-scripted',
      max_tokens: 5000,
      stream: true,
      messages: [{ role: 'user', content }],
    }),
  })
  expect(response.status).toBe(200)
  const answered = response.text().catch(() => 'cut')
  const interruptedAt = performance.now()
  stack.interrupt()
  await sleep(1000)
  stack.interrupt()
  expect(await stack.ended).toMatchObject({ code: 0, stderr: '' })
  expect((performance.now() - interruptedAt) / startMs).toBeLessThan(startsMax)
  expect(await answered).toBe('cut')
  await expectNothingLeft()
})
