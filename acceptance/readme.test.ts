import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { freePort } from '@gatehouse/tools/free-port'
import { startScriptedUpstream } from '@gatehouse/tools/scripted-upstream/server'
import { type Stack, startStack } from '@gatehouse/tools/start-stack'
import { startThrowawayPostgres } from '@gatehouse/tools/throwaway-postgres'
import { expect, onTestFinished, test } from 'vitest'

// The commands of README.md and docs/moderation.md, as a reader copies them. Only addresses and values printed earlier are filled in.

const root = fileURLToPath(new URL('../', import.meta.url))
const readme = await readFile(`${root}README.md`, 'utf8')
const moderation = await readFile(`${root}docs/moderation.md`, 'utf8')

/** The code block that contains this text, with every placeholder replaced; a missing placeholder is an error. */
function blockWith(text: string, fill: Record<string, string> = {}, page = readme): string {
  const blocks = [...page.matchAll(/^```\w+\n(.*?)^```$/gms)].map(([, block = '']) => block)
  const found = blocks.filter((block) => block.includes(text))
  expect([text, found.length]).toEqual([text, 1])
  let block = found[0] ?? ''
  for (const [placeholder, value] of Object.entries(fill)) {
    expect(block).toContain(placeholder)
    block = block.replaceAll(placeholder, value)
  }
  return block
}

type Environment = Record<string, string>

function startBash(script: string, environment: Environment): ChildProcess {
  const args = ['-euo', 'pipefail', '-c', script]
  const env = { PATH: process.env['PATH'], ...environment }
  return spawn('bash', args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
}

async function runBash(script: string, environment: Environment): Promise<string> {
  const child = startBash(script, environment)
  const output: string[] = []
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => output.push(chunk.toString()))
  }
  const code = await new Promise((resolve) => child.once('close', resolve))
  expect([output.join(''), code]).toEqual([output.join(''), 0])
  return output.join('')
}

const valueAfter = (name: string, text: string) =>
  new RegExp(`^${name}: *(\\S+)$`, 'm').exec(text)?.[1] ?? `no ${name}`

const placeholdersOf = (description: Stack['description']) => ({
  'http://127.0.0.1:…': description.base_url,
  'gate_prj_…': description.project_key,
  'gate_adm_…': description.admin_key,
})

// It waits for the checkpoint of the next minute.
test(
  'Try it: a call, a rule that blocks, who published it, and the proof',
  { timeout: 240_000 },
  async () => {
    const { description, stop } = await startStack()
    onTestFinished(() => stop())
    const HOME = await mkdtemp(join(tmpdir(), 'gatehouse-try-'))
    onTestFinished(() => rm(HOME, { recursive: true, force: true }))
    const blocks = [
      blockWith('export BASE_URL', placeholdersOf(description)),
      blockWith('create-policy'),
      // It writes two files where the reader is.
      blockWith('audit who').replaceAll(/(?<= )(proof|keys)\.json/g, `${HOME}/$1.json`),
    ]
    const output = await runBash(blocks.join('\n'), { HOME })
    expect(output).toContain('event: message_stop')
    expect(output).toContain('"reason_code":"REFUSE"')
    expect(output).toContain('is a test double')
    expect(output).toMatch(/published/)
    expect(output).toMatch(/verified/i)
  },
)

test('docs/moderation.md, Try it: what the scripted scorer and judge block', async () => {
  const { description, stop } = await startStack()
  onTestFinished(() => stop())
  const first = blockWith('ask() {', placeholdersOf(description), moderation)
  const [prepare = ''] = first.split(/^(?=ask ')/m)
  const run = async (script: string) =>
    (await runBash(`${prepare}\n${script}`, { HOME: tmpdir() })).trim().split('\n')
  const served = expect.stringContaining('Hello from the scripted upstream.') as string
  const refused = (code: string) => expect.stringContaining(`"code":"${code}"`) as string
  const blocked = refused('moderation_blocked')
  expect(await run(first.slice(prepare.length))).toEqual([blocked, served, served, blocked])
  const stream = await run(blockWith('#script', {}, moderation))
  expect(stream).toContain('event: error')
  expect(stream.at(-1)).toEqual(blocked)
  expect(stream.join('')).not.toMatch(/Well|so on/)
  const judged = await run(blockWith('publish-policy', {}, moderation))
  const byPolicy = refused('policy_blocked')
  expect(judged.slice(-3)).toEqual([byPolicy, byPolicy, served])
})

test('Run it with your own models: from an empty server to the first call with every SDK', async () => {
  const postgres = await startThrowawayPostgres()
  onTestFinished(() => postgres.stop())
  const upstream = await startScriptedUpstream()
  onTestFinished(() => upstream.stop())
  const HOME = await mkdtemp(join(tmpdir(), 'gatehouse-readme-'))
  onTestFinished(() => rm(HOME, { recursive: true, force: true }))
  const [PORT, OPERATIONS_PORT] = [String(await freePort()), String(await freePort())]
  const environment = { HOME, PORT, OPERATIONS_PORT, HOST: '127.0.0.1', UNREADY_SECONDS: '0' }

  await runBash(
    blockWith('createdb', {
      'createdb -h 127.0.0.1': `createdb -h 127.0.0.1 -p ${postgres.port}`,
      'https://api.anthropic.com/v1': `${upstream.url}/v1`,
    }),
    environment,
  )
  const settings = { 'sk-ant-…': 'any-key', '127.0.0.1:5432': `127.0.0.1:${postgres.port}` }
  const [prepare = '', serve = ''] = blockWith('./dev migrate', settings).split(
    /^(?=\.\/dev gatehouse serve)/m,
  )
  const created = await runBash(prepare, environment)
  const exports = prepare.split('./dev migrate')[0] ?? ''
  const service = startBash(`${exports}\nexec ${serve}`, environment)
  onTestFinished(() => stopGroup(service))
  const url = `http://127.0.0.1:${PORT}`
  await expect.poll(() => isReady(url), { timeout: 60_000 }).toBe(true)

  const makeKey = blockWith('create-project-api-key', {
    'http://127.0.0.1:8080': url,
    'gate_adm_…': valueAfter('admin_key', created),
    'proj_…': valueAfter('project_id', created),
  })
  const key = valueAfter('value', await runBash(makeKey, environment))
  const firstCall = await runBash(blockWith('list-models', { 'gate_prj_…': key }), {
    ...environment,
    GATEHOUSE_URL: url,
  })
  expect(firstCall).toMatch(/^claude-sonnet {2}/m)
  expect(firstCall).toContain('"content":"Hello from the scripted upstream."')
  expect(firstCall).toContain('"estimated_credits_used":')
  expect(await statusesOf(70, url, key)).toEqual(new Set([200]))
  expect(await runSdks(url, key)).toEqual([
    'OpenAI: Hello from the scripted upstream.',
    'Anthropic: Hello from the scripted upstream.',
  ])
})

/** The statuses of as many calls to the model, one after the other. */
async function statusesOf(count: number, url: string, key: string): Promise<Set<number>> {
  const statuses = new Set<number>()
  const message = { role: 'user', content: 'Hello' }
  const body = JSON.stringify({ model: 'claude-sonnet', messages: [message] })
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  for (let made = 0; made < count; made++) {
    const answer = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body })
    await answer.text()
    statuses.add(answer.status)
  }
  return statuses
}

/** Runs the example for the SDKs where they are installed; returns what it prints. */
async function runSdks(url: string, key: string): Promise<string[]> {
  const script = blockWith('new Anthropic', { 'http://127.0.0.1:8080': url })
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    cwd: join(root, 'acceptance'),
    env: { GATEHOUSE_API_KEY: key },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  await new Promise((resolve) => child.once('close', resolve))
  return output.trim().split('\n')
}

const isReady = (url: string) =>
  fetch(`${url}/health/ready`).then(
    (response) => response.ok,
    () => false,
  )

async function stopGroup(child: ChildProcess) {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((resolve) => child.once('close', resolve))
  process.kill(-Number(child.pid), 'SIGTERM')
  await ended
}
