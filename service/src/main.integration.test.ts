import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import { runMain as run } from './testing/processes/run-main.ts'
import { redisUrl } from './testing/servers.ts'

// A process that cannot start says why, once, and ends.

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-main-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

async function usedPort(): Promise<string> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return String((server.address() as AddressInfo).port)
}

test('an invalid setting: every line of the reason is on standard error, and nothing in the log', async () => {
  expect(await run({ LOG_LEVEL: 'loud', DATABASE_URL: 'postgres://user:canary%@db/x' })).toEqual({
    code: 1,
    stdout: '',
    stderr: `gatehouse: The configuration is not valid:
  DATABASE_URL: must have %25 in place of each % that does not begin an escape such as %40
  LOG_LEVEL: must be one of info, warn, error, silent
`,
  })
})

test('an example in a message is shown as it is: it holds no secret', async () => {
  const { code, stderr } = await run({ DATABASE_URL: 'localhost' })
  expect([code, stderr]).toEqual([
    1,
    'gatehouse: The configuration is not valid:\n  DATABASE_URL: must be a URL such as postgres://user:<password>@host:5432/gatehouse\n',
  ])
})

test('a catalogue that cannot be read', async () => {
  const outcome = await run({ MODELS_FILE: '/nowhere/models.json', STATE_DIRECTORY: makeFolder() })
  expect(outcome).toEqual({
    code: 1,
    stdout: '',
    stderr: `gatehouse: Bad model catalogue in MODELS_FILE (/nowhere/models.json):
  the file: cannot be read (ENOENT); correct MODELS_FILE, or write the file as docs/models.md shows
`,
  })
})

test('limits that cannot be read', async () => {
  expect(await run({ LIMITS_FILE: '/nowhere/limits.json' })).toEqual({
    code: 1,
    stdout: '',
    stderr: `gatehouse: Bad limits in LIMITS_FILE (/nowhere/limits.json):
  the file: cannot be read (ENOENT); correct LIMITS_FILE, write the file as docs/limits.md shows, or unset LIMITS_FILE to use the built-in limits
`,
  })
})

test('moderation settings that cannot be read', async () => {
  expect(await run({ MODERATION_FILE: '/nowhere/moderation.json' })).toEqual({
    code: 1,
    stdout: '',
    stderr: `gatehouse: Bad moderation settings in MODERATION_FILE (/nowhere/moderation.json):
  the file: cannot be read (ENOENT); correct MODERATION_FILE, or write the file as docs/moderation.md shows: the shortest is {"accept_local_only": true}, for trying it out
`,
  })
})

test.each(['PORT', 'OPERATIONS_PORT'])('%s is in use', async (setting) => {
  const port = await usedPort()
  const { code, stdout, stderr } = await run({ [setting]: port })
  expect([code, stderr]).toEqual([
    1,
    `gatehouse: Cannot listen on 127.0.0.1:${port}: the port is already in use. Stop the program that uses it, or set ${setting} to another port.\n`,
  ])
  expect(stdout).not.toMatch(/EADDRINUSE|already in use/)
})

test.each(['HOST', 'OPERATIONS_HOST'])('%s is not an address of this machine', async (setting) => {
  const { code, stderr } = await run({ [setting]: '192.0.2.1' })
  expect([code, stderr]).toEqual([
    1,
    `gatehouse: Cannot listen on 192.0.2.1:0: the host is not an address of this machine. Correct ${setting}.\n`,
  ])
})

// Several processes do not repeat the reason.

const several = { PROCESSES: '3', REDIS_URL: redisUrl }

test('several processes with a catalogue that cannot be read', async () => {
  const files = { MODELS_FILE: '/nowhere/models.json', STATE_DIRECTORY: makeFolder() }
  expect(await run({ ...several, ...files })).toEqual({
    code: 1,
    stdout: '',
    stderr: `gatehouse: Bad model catalogue in MODELS_FILE (/nowhere/models.json):
  the file: cannot be read (ENOENT); correct MODELS_FILE, or write the file as docs/models.md shows
`,
  })
})

test.each(['PORT', 'OPERATIONS_PORT'])('several processes, and %s is in use', async (setting) => {
  const port = await usedPort()
  expect(await run({ ...several, [setting]: port })).toEqual({
    code: 1,
    stdout: '',
    stderr: `gatehouse: Cannot listen on 127.0.0.1:${port}: the port is already in use. Stop the program that uses it, or set ${setting} to another port.\n`,
  })
})

test('several processes without Redis', async () => {
  const { code, stderr } = await run({ PROCESSES: '2' })
  expect([code, stderr]).toEqual([
    1,
    'gatehouse: The configuration is not valid:\n  REDIS_URL: is required with several PROCESSES, because limits that each counts for itself would multiply\n',
  ])
})

test('several processes of which the first is killed before it serves', async () => {
  // Whatever starts a supervised process ends it: the supervisor itself is not one.
  const kill = `data:text/javascript,import cluster from 'node:cluster'; if (cluster.isWorker) process.kill(process.pid, 'SIGKILL')`
  const { code, stderr } = await run({ ...several, NODE_OPTIONS: `--import="${kill}"` })
  expect([code, stderr]).toEqual([
    1,
    'gatehouse: The first process ended by SIGKILL, before it could serve.\n',
  ])
})
