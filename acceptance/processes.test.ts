import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { runGatehouse } from '@gatehouse/tools/run-script'
import { untilReady } from '@gatehouse/tools/service-process'
import { type Stack, startStack } from '@gatehouse/tools/start-stack'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { countHolds } from './support/credits/books.ts'
import { openAccount } from './support/credits/money.ts'
import { ask, begin, type RunningCall, type Target } from './support/streams/call.ts'

// Two processes on one port, with a supervisor. One stack serves all tests: each has a program of its own.

let stack: Stack
beforeAll(async () => {
  stack = await startStack()
}, 300_000)
afterAll(() => stack.stop(), 300_000)

/** Long enough for a busy machine; how fast it happens is not checked. */
const eventually = { timeout: 60_000, interval: 50 }
const request = { format: 'messages', model: 'claude-scripted' } as const
const usage = { input: 100, output: 10 }

let programs = 0
async function startProgram() {
  const name = `program-${++programs}`
  const api = await stack.startApi(name, { PROCESSES: '2' })
  await untilReady(api)
  const exit = new Promise<number | null>((resolve) => api.child.once('exit', resolve))
  const account = await openAccount(stack, name, 50_000_000)
  await account.recordPayment(5000) // the highest tier, for many calls at once
  const target: Target = { ...account.target, baseUrl: api.baseUrl }
  const operations = api.metricsUrl.replace('/metrics', '')
  const readLog = async () => {
    const text = await readFile(join(stack.folder, `${name}.log`), 'utf8')
    // What follows the last line break is a line that is still being written.
    const lines = text.split('\n').slice(0, -1)
    return lines.map((line) => JSON.parse(line) as LogLine)
  }
  const program = {
    child: api.child,
    exit,
    account,
    target,
    readLog,
    /** The process ids, by number; of a process that was started again the latest. */
    async pids(): Promise<Map<number, number>> {
      const ups = (await readLog()).filter(({ event }) => event === 'process_up')
      return new Map(ups.map(({ process, pid }) => [process ?? 0, pid ?? 0]))
    },
    async readiness() {
      const response = await fetch(`${operations}/health/ready`)
      const { status, reasons } = (await response.json()) as { status: string; reasons: string[] }
      return { http: response.status, status, reasons }
    },
    async metric(name: string): Promise<number> {
      const text = await (await fetch(api.metricsUrl)).text()
      const lines = text.split('\n').filter((line) => line.startsWith(name))
      return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
    },
  }
  await expect.poll(program.readiness, eventually).toEqual(allReady)
  return program
}
type Program = Awaited<ReturnType<typeof startProgram>>
type LogLine = { event: string; process?: number; pid?: number; what?: string; message?: string }

const allReady = { http: 200, status: 'ok', reasons: [] }
const answered = 'gatehouse_request_seconds_count{method="POST",route="/v1/messages"'

/** Streams that last about four seconds, each on a connection of its own, all of which have begun. */
async function beginStreams(target: Target, count: number): Promise<RunningCall[]> {
  const script = { tokens: 80, paceMs: 50, usage }
  const calls = Array.from({ length: count }, () => begin(target, { ...request, script }))
  await Promise.all(calls.map((call) => call.responseStarted))
  return calls
}

const isRunning = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Plain calls at once, each on a connection of its own; all of them succeed. */
async function askPlainly(target: Target, count: number) {
  const call = { ...request, isStreamed: false, script: { tokens: 3, usage } }
  const answers = await Promise.all(Array.from({ length: count }, () => ask(target, call)))
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
}

/** The operator's own check of all balances and charges against the ledger; it fails if it finds a difference. */
const reconcile = () =>
  runGatehouse(['operator', 'credits', 'reconcile'], { environment: stack.service })

async function countReported(): Promise<number> {
  const client = new pg.Client({ connectionString: stack.database.url })
  await client.connect()
  const { rows } = await client.query<{ count: number }>(
    `select count(*)::int as count from api_process where seen_at > now() - interval '15 seconds'`,
  )
  await client.end()
  return rows[0]?.count ?? 0
}

/** Waits until every call is in the ledger: a stream ends for its caller a moment before the process has seen it. */
async function expectCharged({ account }: Program, calls: number) {
  await expect.poll(async () => (await account.calls()).length, eventually).toBe(calls)
}

test('both processes answer on one port, the operations port shows their sum, and each reports itself', async () => {
  const before = await countReported()
  const program = await startProgram()
  await askPlainly(program.target, 30)
  await expect.poll(() => program.metric(answered), eventually).toBe(30)
  const lines = (await program.readLog()).filter(({ event }) => event === 'request')
  expect(new Set(lines.map((line) => line.process))).toEqual(new Set([1, 2]))
  expect(await program.metric('gatehouse_processes')).toBe(2)
  await expect.poll(program.readiness, eventually).toEqual(allReady)
  await expect.poll(countReported, eventually).toBe(before + 2)
  program.child.kill('SIGTERM')
  expect(await program.exit).toBe(0)
  await expect.poll(countReported, eventually).toBe(before)
}, 300_000)

test('a process that is killed under load takes only its own calls with it, and is started again', async () => {
  const program = await startProgram()
  await askPlainly(program.target, 8)
  await expect.poll(() => program.metric(answered), eventually).toBe(8)
  const streams = await beginStreams(program.target, 16)
  const victim = (await program.pids()).get(2)!
  process.kill(victim, 'SIGKILL')
  const killedAt = performance.now()
  await expect.poll(program.readiness, eventually).toMatchObject({ http: 200, status: 'degraded' })
  // The other one serves meanwhile: the kernel gives it all new connections.
  await askPlainly(program.target, 8)
  const answers = await Promise.all(streams.map(({ answer }) => answer))
  const whole = answers.filter(({ isBroken }) => !isBroken)
  const broken = answers.filter(({ isBroken }) => isBroken)
  expect(whole.every(({ text }) => text.includes('event: message_stop'))).toBe(true)
  expect([whole.length > 0, broken.length > 0]).toEqual([true, true])
  await expect.poll(program.readiness, eventually).toEqual(allReady)
  console.log(
    `ready again after ${Math.round(performance.now() - killedAt)} ms; ${broken.length} of 16 streams were cut`,
  )
  const pids = await program.pids()
  expect([pids.get(2) === victim, isRunning(victim)]).toEqual([false, false])
  const ends = (await program.readLog()).filter(({ what }) => what === 'process_ended')
  expect(ends.map(({ message }) => message)).toEqual([
    'Process 2 ended by SIGKILL; it is started again in 100 ms.',
  ])
  expect(await program.metric('gatehouse_process_restarts_total')).toBe(1)
  // Those that the killed process had answered are still counted.
  expect(await program.metric(answered)).toBeGreaterThanOrEqual(16)
  // What was answered is charged; the holds of the others wait for the worker.
  await expectCharged(program, whole.length + 16)
  expect(await countHolds(stack.database.url)).toBe(broken.length)
  expect(await reconcile()).toContain('everything agrees')
  program.child.kill('SIGTERM')
  expect(await program.exit).toBe(0)
}, 300_000)

test('SIGTERM under load drains both processes: no call that was answered is lost', async () => {
  const program = await startProgram()
  const holdsBefore = await countHolds(stack.database.url)
  const streams = await beginStreams(program.target, 16)
  program.child.kill('SIGTERM')
  const answers = await Promise.all(streams.map(({ answer }) => answer))
  expect(answers.filter(({ isBroken }) => isBroken)).toEqual([])
  expect(answers.every(({ text }) => text.includes('event: message_stop'))).toBe(true)
  expect(await program.exit).toBe(0)
  await expectCharged(program, 16)
  expect(await countHolds(stack.database.url)).toBe(holdsBefore)
  for (const pid of (await program.pids()).values()) expect(isRunning(pid)).toBe(false)
}, 300_000)

test('a signal to all processes at once, as terminals send it, is one signal; the second ends them at once', async () => {
  const program = await startProgram()
  const group = -program.child.pid!
  const short = await beginStreams(program.target, 6)
  const long = begin(program.target, { ...request, script: { tokens: 3000, paceMs: 100 } })
  await long.responseStarted
  process.kill(group, 'SIGINT')
  const answers = await Promise.all(short.map(({ answer }) => answer))
  expect(answers.filter(({ isBroken }) => isBroken)).toEqual([])
  process.kill(group, 'SIGINT')
  expect(await program.exit).toBe(1)
  expect((await long.answer).isBroken).toBe(true)
  const pids = [...(await program.pids()).values()]
  await expect.poll(() => pids.some(isRunning), eventually).toBe(false)
}, 300_000)

test('when the supervisor is killed, its processes finish their calls and end', async () => {
  const program = await startProgram()
  const streams = await beginStreams(program.target, 12)
  program.child.kill('SIGKILL')
  await program.exit
  const answers = await Promise.all(streams.map(({ answer }) => answer))
  expect(answers.filter(({ isBroken }) => isBroken)).toEqual([])
  const pids = [...(await program.pids()).values()]
  expect(pids).toHaveLength(2)
  await expect.poll(() => pids.some(isRunning), eventually).toBe(false)
  await expectCharged(program, 12)
}, 300_000)

test('a process that is told to end drains, and another takes its place', async () => {
  const program = await startProgram()
  const victim = (await program.pids()).get(1)!
  // A signal to one process only: it drains in order and is started again.
  process.kill(victim, 'SIGTERM')
  const isReplaced = async () => (await program.pids()).get(1) !== victim
  await expect.poll(isReplaced, eventually).toBe(true)
  await expect.poll(program.readiness, eventually).toMatchObject({ http: 200, status: 'ok' })
  const ends = (await program.readLog()).filter(({ what }) => what === 'process_ended')
  expect(ends.map(({ message }) => message)).toEqual([
    'Process 1 ended with exit code 0; it is started again in 100 ms.',
  ])
  program.child.kill('SIGTERM')
  expect(await program.exit).toBe(0)
}, 300_000)
