import { spawn } from 'node:child_process'
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

// The log goes to a pipe whose reader has stopped: far more than a pipe holds, in a process with a server.

const url = (file: string) => JSON.stringify(new URL(file, import.meta.url).href)

function start() {
  const script = `
    import { createServer } from 'node:http'
    const { createBoundedOutput } = await import(${url('./bounded-output.ts')})
    const { createLog } = await import(${url('./log.ts')})
    const { stopOnSignals } = await import(${url('./shutdown.ts')})
    let dropped = 0
    const log = createLog('info', createBoundedOutput(process.stdout, { onDropped: () => dropped++ }))
    stopOnSignals([], log)
    const server = createServer((request, response) => {
      for (let line = 0; line < 1000; line++) log.event('filler', { text: 'x'.repeat(1000) })
      response.end(String(dropped))
    })
    server.listen(0, '127.0.0.1', () => process.send(server.address().port))`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  child.stdout?.pause()
  const port = new Promise<number>((resolve) =>
    child.once('message', (sent) => resolve(sent as number)),
  )
  const exit = new Promise<number | null>((resolve) => child.once('exit', resolve))
  return { child, port, exit }
}

test('a log reader that stops reading stops neither answers nor SIGTERM', async () => {
  const { child, port, exit } = start()
  const address = `http://127.0.0.1:${await port}`
  let dropped = 0
  for (let call = 0; call < 20; call++) {
    dropped = Number(await (await fetch(address)).text())
  }
  expect(dropped).toBeGreaterThan(1000)
  child.kill('SIGTERM')
  expect(await exit).toBe(0)
})

test('a reader that reads again finds the number of dropped lines, and then the next lines', async () => {
  const { child, port, exit } = start()
  const address = `http://127.0.0.1:${await port}`
  let dropped = 0
  for (let call = 0; call < 20; call++) {
    dropped = Number(await (await fetch(address)).text())
  }
  let text = ''
  child.stdout?.on('data', (chunk: Buffer) => (text += chunk.toString())).resume()
  await expect.poll(() => text.length).toBeGreaterThan(4_000_000)
  child.kill('SIGTERM')
  expect(await exit).toBe(0)
  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { event: string; lines?: number })
  const events = lines.map(({ event }) => event)
  expect(events.slice(-3)).toEqual(['log_lines_dropped', 'stopping', 'stopped'])
  expect(lines.find(({ event }) => event === 'log_lines_dropped')?.lines).toBe(dropped)
  expect(events.filter((event) => event === 'filler')).toHaveLength(20_000 - dropped)
})

const writer = (end: string) => `
  const { createBoundedOutput, standardOutput } = await import(${url('./bounded-output.ts')})
  const { createLog } = await import(${url('./log.ts')})
  const { stopOnSignals } = await import(${url('./shutdown.ts')})
  const log = createLog('info', createBoundedOutput(standardOutput()))
  stopOnSignals([], log)
  for (let number = 0; number < 500; number++) log.event('line', { number })
  ${end}`

/** Runs a process whose standard output is a file, and returns the events in it. */
async function runIntoFile(end: string) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'log')
  const child = spawn(process.execPath, ['--input-type=module', '-e', writer(end)], {
    stdio: ['ignore', openSync(file, 'a'), 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const code = await new Promise<number | null>((resolve) => child.once('exit', resolve))
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
  return {
    code,
    lines: lines.map((line) => JSON.parse(line) as { event: string; number?: number }),
  }
}

/** The same with a pipe. */
async function runIntoPipe(end: string) {
  const child = spawn(process.execPath, ['--input-type=module', '-e', writer(end)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let text = ''
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()))
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  const lines = text.trimEnd().split('\n')
  return {
    code,
    lines: lines.map((line) => JSON.parse(line) as { event: string; number?: number }),
  }
}

const stop = "process.kill(process.pid, 'SIGTERM'); setInterval(() => 0, 1000)"
const fail = "setTimeout(() => { throw new Error('x') })"
const numbers = Array.from({ length: 500 }, (_, number) => number)

test.each([
  { into: 'a file', before: 'a stop', run: runIntoFile, end: stop, exitCode: 0, last: ['stopped'] },
  {
    into: 'a file',
    before: 'a crash',
    run: runIntoFile,
    end: fail,
    exitCode: 1,
    last: ['problem'],
  },
  { into: 'a pipe', before: 'a stop', run: runIntoPipe, end: stop, exitCode: 0, last: ['stopped'] },
  {
    into: 'a pipe',
    before: 'a crash',
    run: runIntoPipe,
    end: fail,
    exitCode: 1,
    last: ['problem'],
  },
])('every line before $before reaches $into, in order', async ({ run, end, exitCode, last }) => {
  const { code, lines } = await run(end)
  expect(code).toBe(exitCode)
  expect(lines.filter(({ event }) => event === 'line').map((line) => line.number)).toEqual(numbers)
  expect(lines.map(({ event }) => event)).toEqual(expect.arrayContaining([...last, 'stopped']))
})
