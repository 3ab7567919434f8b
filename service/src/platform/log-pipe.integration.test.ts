import { spawn } from 'node:child_process'

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
