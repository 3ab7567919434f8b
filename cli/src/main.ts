import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'

import { terminalWidth } from './output/terminal-width.ts'
import { run } from './run.ts'

// A reader like `head` may leave early; that is no fault.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
})

const { exitCode, stdout, stderr } = await run(process.argv.slice(2), {
  environment: process.env,
  readText: (path) => readFileSync(path, 'utf8'),
  wait: (ms) => setTimeout(ms),
  randomKey: randomUUID,
  width: terminalWidth(process.stdout.columns, process.env['COLUMNS']),
  say: (line) => void process.stderr.write(`${line}\n`),
})

// Not `process.exit`: a pipe would lose what is still on its way.
process.exitCode = exitCode
process.stdout.write(stdout)
process.stderr.write(stderr)
