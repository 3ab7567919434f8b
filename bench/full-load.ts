import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { ask } from './ask.ts'
import { bodyOf, type Mode, path } from './chat-call.ts'
import { headerSets } from './header-sets.ts'
import type { Target } from './target.ts'

const script = fileURLToPath(new URL('wrk.lua', import.meta.url))

type Counted = {
  requests: number
  bytes: number
  seconds: number
  failed: number
  unanswered: number
}

type Wish = { mode: Mode; connections: number; seconds: number; scratch: string }

/** Keeps every connection busy. One answer that is not as it should be ends the run. */
export async function fullLoad(target: Target, wish: Wish): Promise<Counted> {
  const { mode, connections, seconds, scratch } = wish
  const usual = await ask(target, mode)
  const folder = await mkdtemp(join(scratch, 'wrk-'))
  try {
    const [body, headers] = [join(folder, 'body'), join(folder, 'headers')]
    await writeFile(body, bodyOf(mode))
    await writeFile(headers, headerSets(target).map(asLine).join(''))
    const load = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '10s', '-s', script]
    const run = [...load, target.url + path, '--', body, headers]
    const { stdout } = await promisify(execFile)('wrk', run)
    const counted = JSON.parse(/^RESULT (.*)$/m.exec(stdout)?.[1] ?? '{}') as Counted
    check(target.name, counted, usual.bytes)
    return counted
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const asLine = (headers: Record<string, string>) =>
  `${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\t')}\n`

/** wrk does not read bodies, but counts their bytes: an answer that lacks something is shorter. */
function check(name: string, { requests, bytes, failed, unanswered }: Counted, usual: number) {
  if (!requests) throw new Error(`${name} answered nothing.`)
  if (failed || unanswered) {
    throw new Error(`${name}: ${failed} answers were not 200, ${unanswered} did not come.`)
  }
  const mean = bytes / requests
  if (Math.abs(mean / usual - 1) > 0.03) {
    throw new Error(`${name}: an answer has ${mean.toFixed(0)} bytes, a right one ${usual}.`)
  }
}
