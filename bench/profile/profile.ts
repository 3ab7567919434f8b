import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'

import { useSources } from '@gatehouse/tools/program'

import { type Mode, modes } from '../chat-call.ts'
import { median } from '../cpu/cpu-table.ts'
import { deferStop } from '../defer-stop.ts'
import { type FullLoad, prepareLoad, warmUp } from '../full-load.ts'
import { createCpuMeter, mainThreadMicroseconds } from '../process-usage.ts'
import { startOwnServers } from '../servers/own-servers.ts'
import { startGatehouse } from '../targets/gatehouse.ts'
import { startBareProxy, startUpstream } from '../targets/start-targets.ts'
import type { Target } from '../targets/target.ts'
import { type Measured, partsTableOf } from './parts-table.ts'
import { type Profile, reportOf } from './report.ts'

const connections = 32
const windows = 4
const windowSeconds = 2
const profileSeconds = 8

type Loads = { bare: Target; gatehouse: Target; loadBare: FullLoad; loadGatehouse: FullLoad }

/** Profiles the main thread of Gatehouse under full load and prints where its time goes. */
export async function profileGatehouse(
  scratch: string,
  warmUpRequests: number,
  cleanup: AsyncDisposableStack,
) {
  // The parts of the table are folders of the sources.
  useSources()
  const folder = await mkdtemp(join(scratch, 'profile-'))
  cleanup.defer(() => rm(folder, { recursive: true, force: true }))
  const file = join(scratch, 'gatehouse.cpuprofile')
  const hook = new URL('hook.ts', import.meta.url).href
  const environment = { NODE_OPTIONS: `--import=${hook}`, PROFILE_FILE: file }
  const servers = await startOwnServers(cleanup)
  const upstream = await deferStop(await startUpstream(), cleanup)
  const bare = await deferStop(await startBareProxy(upstream.url), cleanup)
  const options = { upstream: upstream.url, servers, environment }
  const gatehouse = await deferStop(await startGatehouse(options), cleanup)
  const prepared = new Map<Mode, Loads>()
  for (const mode of modes) {
    const loadBare = await prepareLoad(bare, { mode, connections, folder })
    const loadGatehouse = await prepareLoad(gatehouse, { mode, connections, folder })
    await warmUp(loadBare, warmUpRequests)
    await warmUp(loadGatehouse, warmUpRequests)
    prepared.set(mode, { bare, gatehouse, loadBare, loadGatehouse })
  }
  for (const [mode, loads] of prepared) {
    const measured = await measureUnprofiled(loads)
    const { profile, requests } = await takeProfile(loads, file)
    console.log(`\n=== ${mode}: ${requests} requests\n\n${reportOf(profile, requests)}`)
    console.log(`\n${partsTableOf(mode, profile, measured)}`)
  }
  const caveat = await gatehouse.caveat()
  if (caveat) throw new Error(caveat)
}

/** The profiler takes time itself, so the times come from windows without it, and only the shares from the profile. */
async function measureUnprofiled(loads: Loads): Promise<Measured> {
  const { bare, gatehouse, loadBare, loadGatehouse } = loads
  const [bareCpu, serviceCpu] = [createCpuMeter(bare.pids), createCpuMeter(gatehouse.pids)]
  const measured = { bare: [] as number[], service: [] as number[], mainThread: [] as number[] }
  const readMain = () => mainThreadMicroseconds(gatehouse.pids[0] ?? 0)
  for (let window = 0; window < windows; window++) {
    const bareBefore = await bareCpu()
    const { requests: bareRequests } = await loadBare(windowSeconds)
    measured.bare.push(((await bareCpu()) - bareBefore) / bareRequests)
    const before = [await serviceCpu(), await readMain()] as const
    const { requests } = await loadGatehouse(windowSeconds)
    measured.service.push(((await serviceCpu()) - before[0]) / requests)
    measured.mainThread.push(((await readMain()) - before[1]) / requests)
  }
  return {
    bare: median(measured.bare),
    service: median(measured.service),
    mainThread: median(measured.mainThread),
  }
}

async function takeProfile({ gatehouse, loadGatehouse }: Loads, file: string) {
  const [pid = 0] = gatehouse.pids
  await rm(file, { force: true })
  process.kill(pid, 'SIGUSR2')
  const { requests } = await loadGatehouse(profileSeconds)
  process.kill(pid, 'SIGUSR2')
  await untilWritten(file)
  return { profile: JSON.parse(await readFile(file, 'utf8')) as Profile, requests }
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
