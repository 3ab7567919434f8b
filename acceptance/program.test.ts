import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

import { freePort } from '@gatehouse/tools/free-port'
import { isBuilt, programFile } from '@gatehouse/tools/program'
import { stopProcess, untilReady } from '@gatehouse/tools/service-process'
import { repositoryRoot } from '@gatehouse/tools/source-files'
import { expect, onTestFinished, test } from 'vitest'

import { useStack } from './support/use-stack.ts'

// The command as an operator starts it: from a shell, without the channel that other tests have to their processes.

const stack = useStack({ models: null })

const isRoot = process.getuid?.() === 0
/** Root of a container may not mount anything. */
const canMount =
  isRoot && spawnSync('unshare', ['--mount', 'mount', '-o', 'remount,bind,ro', '/']).status === 0

/** A copy of what ships, without what earlier starts have left in it. */
async function copyProgram(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-program-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const source = dirname(programFile('gatehouse'))
  await cp(source, folder, {
    recursive: true,
    filter: (path) => path !== join(source, 'compile-cache'),
  })
  return folder
}

type Start = {
  command: readonly string[]
  environment?: Record<string, string>
  uid?: number
}

/** Starts an API process on ports of its own. */
async function start({ command, environment = {}, uid }: Start) {
  const { STATE_DIRECTORY: _, ...service } = stack().service as Record<string, string>
  const [port, operationsPort] = [await freePort(), await freePort()]
  const [program = '', ...args] = command
  const child = spawn(program, args, {
    cwd: '/',
    env: {
      ...service,
      ROLES: 'api',
      PORT: String(port),
      OPERATIONS_PORT: String(operationsPort),
      ...environment,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
    ...(uid !== undefined && { uid, gid: uid }),
  })
  onTestFinished(() => stopProcess(child, 'SIGKILL'))
  const errors = collect(child)
  const api = {
    child,
    baseUrl: `http://127.0.0.1:${port}`,
    metricsUrl: `http://127.0.0.1:${operationsPort}/metrics`,
  }
  await untilReady(api)
  return { ...api, errors }
}

function collect(child: ChildProcess): () => string {
  const chunks: Buffer[] = []
  child.stderr?.on('data', (chunk: Buffer) => chunks.push(chunk))
  return () => Buffer.concat(chunks).toString()
}

const countFiles = async (folder: string) =>
  (await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])).filter(
    (entry) => entry.isFile(),
  ).length

test.runIf(isBuilt())(
  'after kill -9 as soon as it is ready, the next start finds its compiled code',
  async () => {
    const folder = await copyProgram()
    const command = [process.execPath, join(folder, 'gatehouse.mjs'), 'serve']
    const first = await start({ command })
    first.child.kill('SIGKILL')
    expect(await countFiles(join(folder, 'compile-cache'))).toBeGreaterThan(5)

    const second = await start({ command, environment: { NODE_DEBUG_NATIVE: 'COMPILE_CACHE' } })
    await stopProcess(second.child, 'SIGKILL')
    const uses = [
      ...second.errors().matchAll(/cache for .*?\/([\w-]+\.mjs).*?(was accepted|was rejected)/g),
    ]
    const accepted = uses.filter(([, , outcome]) => outcome === 'was accepted')
    expect(accepted.map(([, name]) => name)).toContain('main.mjs')
    expect(uses.length - accepted.length).toBe(0)
  },
)

test('serve limits the space of new objects by itself, with the same process id, and stops on SIGTERM', async () => {
  const command = [process.execPath, programFile('gatehouse'), 'serve']
  const { child } = await start({ command })
  const line = await readFile(`/proc/${child.pid}/cmdline`, 'utf8')
  expect(line.split('\0')).toContain('--max-semi-space-size=32')
  await stopProcess(child, 'SIGTERM')
  expect(child.exitCode).toBe(0)
  // Processes that tests have a channel to are started with the same limit.
  const [api] = stack().apis
  expect(await readFile(`/proc/${api?.child.pid}/cmdline`, 'utf8')).toContain(
    '--max-semi-space-size=32',
  )
})

test('each of several processes has the limit too', async () => {
  const command = [process.execPath, programFile('gatehouse'), 'serve']
  const { child } = await start({ command, environment: { PROCESSES: '2' } })
  const children = await readFile(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')
  const lines = await Promise.all(
    children
      .trim()
      .split(' ')
      .map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8')),
  )
  expect(lines.filter((line) => line.split('\0').includes('--supervised')).length).toBe(2)
  for (const line of lines) expect(line.split('\0')).toContain('--max-semi-space-size=32')
  await stopProcess(child, 'SIGTERM')
  expect(child.exitCode).toBe(0)
})

test('an operator may choose another limit', async () => {
  const command = [process.execPath, programFile('gatehouse'), 'serve']
  const environment = { NODE_OPTIONS: '--max-semi-space-size=64' }
  const { child } = await start({ command, environment })
  const line = await readFile(`/proc/${child.pid}/cmdline`, 'utf8')
  expect(line).not.toContain('semi-space')
})

test.runIf(isBuilt() && isRoot)(
  'an unknown user without a home starts it, and nothing is written',
  async () => {
    const folder = await copyProgram()
    await promisify(execFile)('chmod', ['-R', 'go+rX,go-w', folder])
    const node = join(folder, 'node')
    // The folder of the usual one may not be open to everybody.
    await cp(process.execPath, node)
    const before = await countFiles(folder)
    const { child } = await start({
      command: [node, join(folder, 'gatehouse.mjs'), 'serve'],
      uid: 54_321,
    })
    await stopProcess(child, 'SIGTERM')
    expect([child.exitCode, await countFiles(folder)]).toEqual([0, before])
  },
)

test.runIf(isBuilt() && canMount)(
  'on a read-only file system it starts, and a state directory is all that it writes to',
  async () => {
    const folder = await copyProgram()
    const state = join(folder, 'state')
    await mkdir(state)
    const readOnly = [
      `mount --bind ${state} ${state}`,
      'mount -o remount,bind,ro /',
      `! touch ${folder}/not-writable 2>/dev/null`,
      `exec ${process.execPath} ${join(folder, 'gatehouse.mjs')} serve`,
    ].join(' && ')
    const { child } = await start({
      command: ['unshare', '--mount', 'sh', '-c', readOnly],
      environment: { STATE_DIRECTORY: state },
    })
    await stopProcess(child, 'SIGTERM')
    expect(child.exitCode).toBe(0)
    expect(await countFiles(join(folder, 'compile-cache'))).toBe(0)
  },
)

test('every command that operations.md shows is one', async () => {
  const page = await readFile(join(repositoryRoot, 'docs/operations.md'), 'utf8')
  const shown = [...page.matchAll(/`gatehouse ((?:serve|migrate|operator)[ a-z]*)/g)]
  const commands = new Set(shown.map(([, words = '']) => words.trim()))
  expect([...commands]).toEqual(expect.arrayContaining(['serve', 'migrate', 'operator']))
  for (const words of commands) {
    const args = [programFile('gatehouse'), ...words.split(' '), '--help']
    const { stdout } = await promisify(execFile)(process.execPath, args, { env: {} })
    expect([words, stdout]).toEqual([words, expect.stringContaining('Usage: gatehouse')])
  }
})

test('an unknown option of serve or migrate is refused, and starts nothing', async () => {
  for (const command of ['serve', 'migrate']) {
    const args = [programFile('gatehouse'), command, '--now']
    const refused = await promisify(execFile)(process.execPath, args, { env: {} }).catch(
      (error: unknown) => error,
    )
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("no option '--now'") })
  }
})
