import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

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

test('--json prints exactly one line when ready within 15 s, and a signal leaves nothing behind', async () => {
  const before = await stackDatabases()
  const startedAt = performance.now()
  const { child, lines, firstLine, exit } = startStack(['--json', '--processes', '2'])
  const stack = JSON.parse(await firstLine) as Record<string, string> & { base_urls: string[] }
  expect(performance.now() - startedAt).toBeLessThan(15_000)
  expect(Object.keys(stack)).toEqual([
    ...['base_url', 'base_urls', 'metrics_urls', 'admin_key', 'project_key'],
    ...['organization_id', 'project_id', 'upstream_url'],
  ])
  expect(stack.base_urls).toHaveLength(2)
  const headers = { authorization: `Bearer ${stack['admin_key']}` }
  for (const baseUrl of stack.base_urls) {
    const response = await fetch(`${baseUrl}/v1/organization/admin_api_keys`, { headers })
    expect(response.status).toBe(200)
  }
  const metrics = await fetch(stack['metrics_urls']?.[0] ?? '')
  expect(await metrics.text()).toContain('gatehouse_request_seconds')
  child.kill('SIGINT')
  expect(await exit).toBe(0)
  expect(lines).toHaveLength(1)
  expect(await stackDatabases()).toEqual(before)
  await expect(fetch(stack['base_url'] ?? '')).rejects.toThrow('fetch failed')
})

test('killed without warning: its processes notice, and do not live on', async () => {
  const before = await stackDatabases()
  const { child, firstLine } = startStack(['--json'])
  const stack = JSON.parse(await firstLine) as { base_url: string }
  child.kill('SIGKILL')
  const isUp = () =>
    fetch(`${stack.base_url}/health/live`).then(
      () => true,
      () => false,
    )
  await expect.poll(isUp, { timeout: 10_000 }).toBe(false)
  // Nobody was left to drop the database.
  const left = (await stackDatabases()).filter((name) => !before.includes(name))
  for (const name of left) await onServer(`drop database ${name} with (force)`)
})

test('the panel has commands to copy that work, and SIGTERM stops it', async () => {
  const { child, lines, exit } = startStack([])
  await expect
    .poll(() => lines.join('\n'), { timeout: 20_000 })
    .toContain('Ctrl-C stops everything')
  const panel = lines.join('\n')
  const [, command = ''] = /^ +(curl .*admin_api_keys)$/m.exec(panel) ?? []
  const curl = spawn('bash', ['-c', command], { stdio: ['ignore', 'pipe', 'inherit'] })
  const chunks: Buffer[] = []
  for await (const chunk of curl.stdout as AsyncIterable<Buffer>) chunks.push(chunk)
  expect(JSON.parse(Buffer.concat(chunks).toString())).toMatchObject({ object: 'list' })
  child.kill('SIGTERM')
  expect(await exit).toBe(0)
})

test('a wrong argument is explained', async () => {
  const child = spawn(dev, ['stack', '--processes', 'many'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const chunks: Buffer[] = []
  for await (const chunk of child.stderr as AsyncIterable<Buffer>) chunks.push(chunk)
  expect(Buffer.concat(chunks).toString()).toContain('--processes takes a whole number')
})
