import { execFile, spawn } from 'node:child_process'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'

// `./dev stack` as a newcomer and as a script use it.

const dev = fileURLToPath(new URL('../dev', import.meta.url))

function startStack(args: readonly string[]) {
  const child = spawn(dev, ['stack', ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines: string[] = []
  const reader = createInterface(child.stdout).on('line', (line) => lines.push(line))
  const firstLine = new Promise<string>((resolve) => reader.once('line', resolve))
  const exit = new Promise<number | null>((resolve) => child.once('close', resolve))
  return { child, lines, firstLine, exit }
}

async function onServer(statement: string): Promise<{ datname: string }[]> {
  const url = process.env['TEST_DATABASE_URL'] ?? 'postgres://postgres@127.0.0.1:5432/postgres'
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query<{ datname: string }>(statement)
  await client.end()
  return rows
}

async function stackDatabases(): Promise<string[]> {
  const like = "select datname from pg_database where datname like 'gatehouse_stack_%'"
  return (await onServer(like)).map(({ datname }) => datname)
}

const redisUrl = process.env['TEST_REDIS_URL'] ?? 'redis://127.0.0.1:6379'

/** The keys of all stacks on the Redis that this one uses; others may run at the same time. */
async function stackKeys(): Promise<string[]> {
  const { stdout } = await promisify(execFile)('redis-cli', [
    '-u',
    redisUrl,
    '--scan',
    '--pattern',
    'gatehouse_stack_*',
  ])
  return stdout.split('\n').filter((key) => key !== '')
}

/** A stack starts several processes and a database; each costs about as much as this one. */
const timesOneProcess = 15

async function timeOneProcess(): Promise<number> {
  const startedAt = performance.now()
  const child = spawn(dev, ['operator'], { stdio: 'ignore' })
  await new Promise((resolve) => child.once('close', resolve))
  return performance.now() - startedAt
}

test(`--json prints exactly one line when ready, within ${timesOneProcess} times one process, and a signal leaves nothing behind`, async () => {
  const before = await stackDatabases()
  const keysBefore = await stackKeys()
  const processesMs = [await timeOneProcess()]
  const startedAt = performance.now()
  const { child, lines, firstLine, exit } = startStack(['--json', '--processes', '2'])
  const stack = JSON.parse(await firstLine) as Record<string, string> & { base_urls: string[] }
  const readyMs = performance.now() - startedAt
  processesMs.push(await timeOneProcess())
  console.log(
    `ready in ${Math.round(readyMs)} ms; one process: ${processesMs.map(Math.round).join(' and ')} ms`,
  )
  expect(readyMs / Math.max(...processesMs)).toBeLessThan(timesOneProcess)
  expect(Object.keys(stack)).toEqual([
    'base_url',
    'base_urls',
    'metrics_urls',
    'admin_key',
    'project_key',
    'organization_id',
    'project_id',
    'upstream_url',
  ])
  expect(stack.base_urls).toHaveLength(2)
  const headers = { authorization: `Bearer ${stack['admin_key']}` }
  for (const baseUrl of stack.base_urls) {
    const response = await fetch(`${baseUrl}/v1/organization/admin_api_keys`, { headers })
    expect(response.status).toBe(200)
  }
  const metrics = await fetch(stack['metrics_urls']?.[0] ?? '')
  expect(await metrics.text()).toContain('gatehouse_request_seconds')
  const counted = (await stackKeys()).filter((key) => !keysBefore.includes(key))
  expect(counted.length).toBeGreaterThan(0) // the calls above were counted
  child.kill('SIGINT')
  expect(await exit).toBe(0)
  expect(lines).toHaveLength(1)
  expect(await stackDatabases()).toEqual(before)
  const left = new Set(await stackKeys())
  expect(counted.filter((key) => left.has(key))).toEqual([])
  await expect(fetch(stack['base_url'] ?? '')).rejects.toThrow('fetch failed')
})

test('when the command is killed, its processes end too', async () => {
  const before = await stackDatabases()
  const { child, firstLine } = startStack(['--json'])
  const stack = JSON.parse(await firstLine) as { base_url: string }
  child.kill('SIGKILL')
  const isUp = () =>
    fetch(`${stack.base_url}/health/live`).then(
      () => true,
      () => false,
    )
  await expect.poll(isUp, { timeout: 60_000 }).toBe(false)
  // The killed command could not drop its database.
  const left = (await stackDatabases()).filter((name) => !before.includes(name))
  for (const name of left) await onServer(`drop database ${name} with (force)`)
})

test('the panel has commands to copy that work, and SIGTERM stops it', async () => {
  const { child, lines, exit } = startStack([])
  await expect
    .poll(() => lines.join('\n'), { timeout: 120_000 })
    .toContain('Ctrl-C stops everything')
  const panel = lines.join('\n')
  const [, list = ''] = /^ +(curl .*admin_api_keys)$/m.exec(panel) ?? []
  expect(JSON.parse(await runBash(list))).toMatchObject({ object: 'list' })
  const [, blocked = ''] = /It blocks this call:\n\n([^]*?)\n\n/.exec(panel) ?? []
  expect(JSON.parse(await runBash(blocked))).toMatchObject({
    error: { code: 'moderation_blocked' },
  })
  const [, judged = ''] = /send a call that it blocks:\n\n([^]*?)\n\n/.exec(panel) ?? []
  expect(JSON.parse((await runBash(judged)).split('\n').at(-1) ?? '')).toMatchObject({
    error: { code: 'policy_blocked' },
  })
  expect(panel).toContain('Tier           tier_5: 900 requests per minute and 32 at once')
  expect(panel).toContain('Credits        5000 USD')
  expect(await callModel(panel, 150)).toEqual(new Set([200]))
  child.kill('SIGTERM')
  expect(await exit).toBe(0)
})

async function runBash(command: string): Promise<string> {
  const child = spawn('bash', ['-c', command], {
    cwd: dirname(dev),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const chunks: Buffer[] = []
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

/** The statuses of so many calls with the key that the panel shows: the free tier would refuse after 60. */
async function callModel(panel: string, count: number): Promise<Set<number>> {
  const [, url = ''] = /^ +API +(\S+)$/m.exec(panel) ?? []
  const [, key = ''] = /^ +Project key +(\S+)$/m.exec(panel) ?? []
  const messages = [{ role: 'user', content: 'Hello' }]
  const statuses = new Set<number>()
  for (let sent = 0; sent < count; sent++) {
    const response = await fetch(`${url}/v1/messages`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'claude-scripted', max_tokens: 10, messages }),
    })
    await response.text()
    statuses.add(response.status)
  }
  return statuses
}

test('a wrong argument is explained', async () => {
  const child = spawn(dev, ['stack', '--processes', 'many'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const chunks: Buffer[] = []
  for await (const chunk of child.stderr as AsyncIterable<Buffer>) chunks.push(chunk)
  expect(Buffer.concat(chunks).toString()).toContain('--processes takes a whole number')
})
