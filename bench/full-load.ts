import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { bodyOf, type Mode, path } from './chat-call.ts'
import { headerSets } from './header-sets.ts'
import { probeTarget } from './probe-target.ts'
import type { Target } from './targets/target.ts'

const script = fileURLToPath(new URL('wrk.lua', import.meta.url))

type Totals = {
  requests: number
  bytes: number
  seconds: number
  failed: number
  unanswered: number
}

type LoadOptions = { mode: Mode; connections: number; seconds: number; scratch: string }

/** Keeps every connection busy. One incorrect answer ends the run. */
export async function fullLoad(target: Target, options: LoadOptions): Promise<Totals> {
  const { mode, connections, seconds, scratch } = options
  const expected = await probeTarget(target, mode)
  const folder = await mkdtemp(join(scratch, 'wrk-'))
  try {
    const [body, headers] = [join(folder, 'body'), join(folder, 'headers')]
    await writeFile(body, bodyOf(mode))
    await writeFile(headers, headerSets(target).map(asLine).join(''))
    const load = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '10s', '-s', script]
    const run = [...load, target.url + path, '--', body, headers]
    const { stdout } = await promisify(execFile)('wrk', run)
    const result = JSON.parse(/^RESULT (.*)$/m.exec(stdout)?.[1] ?? '{}') as Totals
    check(target.name, result, expected.bytes)
    return result
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const asLine = (headers: Record<string, string>) =>
  `${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\t')}\n`

/** wrk does not check bodies, but it counts their bytes: an incomplete answer is shorter. */
function check(name: string, { requests, bytes, failed, unanswered }: Totals, expected: number) {
  if (!requests) throw new Error(`${name} answered no request.`)
  if (failed || unanswered) {
    throw new Error(`${name}: ${failed} answers were not 200, ${unanswered} were missing.`)
  }
  const mean = bytes / requests
  if (Math.abs(mean / expected - 1) > 0.03) {
    throw new Error(`${name}: the mean answer has ${mean.toFixed(0)} bytes instead of ${expected}.`)
  }
}
