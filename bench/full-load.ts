import { execFile } from 'node:child_process'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { bodyOf, type Mode, path } from './chat-call.ts'
import { headerSets } from './header-sets.ts'
import { probeTarget } from './probe-target.ts'
import type { Target } from './targets/target.ts'

const script = fileURLToPath(new URL('wrk.lua', import.meta.url))
const windowSeconds = 2

type Totals = {
  requests: number
  bytes: number
  seconds: number
  failed: number
  unanswered: number
}

/** `folder`: of this run; it is removed with everything in it when the run ends. */
type LoadOptions = { mode: Mode; connections: number; folder: string }

/** Checks one answer of the target, and returns a function that keeps every connection busy for some seconds. */
export async function prepareLoad(target: Target, { mode, connections, folder }: LoadOptions) {
  const expected = await probeTarget(target, mode)
  const own = await mkdtemp(join(folder, 'wrk-'))
  const [body, headers] = [join(own, 'body'), join(own, 'headers')]
  await writeFile(body, bodyOf(mode, target.isFresh))
  await writeFile(headers, headerSets(target).map(asLine).join(''))
  return async (seconds: number): Promise<Totals> => {
    const load = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '10s', '-s', script]
    const run = [...load, target.url + path, '--', body, headers]
    const { stdout } = await promisify(execFile)('wrk', run)
    const result = JSON.parse(/^RESULT (.*)$/m.exec(stdout)?.[1] ?? '{}') as Totals
    check(target.name, result, { bytes: expected.bytes, connections })
    return result
  }
}
export type FullLoad = Awaited<ReturnType<typeof prepareLoad>>

/** Loads a target until it has answered so many requests: the compiler decides by calls, not by seconds. */
export async function warmUp(load: FullLoad, requests: number) {
  for (let done = 0; done < requests;) done += (await load(windowSeconds)).requests
}

const asLine = (headers: Record<string, string>) =>
  `${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\t')}\n`

type Expected = { bytes: number; connections: number }

/** wrk does not check bodies, but it counts their bytes: an incomplete answer is shorter. */
function check(name: string, totals: Totals, expected: Expected) {
  const { requests, bytes, failed, unanswered } = totals
  if (!requests) throw new Error(`${name} answered no request.`)
  if (failed || unanswered) {
    throw new Error(`${name}: ${failed} answers were not 200, ${unanswered} were missing.`)
  }
  // The bytes of answers that wrk cuts off at the end are counted too, and a busy target cuts streams into more chunks.
  const most = (requests + expected.connections) * expected.bytes * 1.05
  if (bytes < requests * expected.bytes * 0.97 || bytes > most) {
    const mean = (bytes / requests).toFixed(0)
    throw new Error(`${name}: the mean answer has ${mean} bytes instead of ${expected.bytes}.`)
  }
}
