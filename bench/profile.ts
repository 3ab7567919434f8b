import { readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'

import { modes } from './chat-call.ts'
import { deferStop } from './defer-stop.ts'
import { fullLoad } from './full-load.ts'
import { type Profile, reportOf } from './profile-report.ts'
import { startGatehouse } from './targets/gatehouse.ts'
import type { Target } from './targets/target.ts'

const connections = 32

/** Profiles the main thread of Gatehouse under full load and prints where its time goes. */
export async function profileGatehouse(
  upstream: Target,
  scratch: string,
  cleanup: AsyncDisposableStack,
) {
  const file = join(scratch, 'gatehouse.cpuprofile')
  const hook = new URL('profiler-hook.ts', import.meta.url).href
  const environment = { NODE_OPTIONS: `--import=${hook}`, PROFILE_FILE: file }
  const gatehouse = await deferStop(await startGatehouse(upstream.url, environment), cleanup)
  const [pid = 0] = gatehouse.pids
  for (const mode of modes) {
    await fullLoad(gatehouse, { mode, connections, seconds: 4, scratch })
    await rm(file, { force: true })
    process.kill(pid, 'SIGUSR2')
    const { requests } = await fullLoad(gatehouse, { mode, connections, seconds: 8, scratch })
    process.kill(pid, 'SIGUSR2')
    await untilWritten(file)
    const profile = JSON.parse(await readFile(file, 'utf8')) as Profile
    console.log(`\n=== ${mode}: ${requests} requests\n\n${reportOf(profile, requests)}`)
  }
  const caveat = await gatehouse.caveat?.()
  if (caveat) console.log(`\n${caveat}`)
}

/** Waits until the file exists and no longer grows. */
async function untilWritten(file: string) {
  let size = 0
  for (const deadline = Date.now() + 20_000; Date.now() < deadline;) {
    const { size: now } = await stat(file).catch(() => ({ size: 0 }))
    if (now > 0 && now === size) return
    size = now
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
  throw new Error('The profile was not written.')
}
