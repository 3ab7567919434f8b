import { measureAudit } from './audit/measure-audit.ts'
import type { Figures } from './budget/goals.ts'
import { measureCalm } from './calm/measure-calm.ts'
import { type Mode, modes } from './chat-call.ts'
import { bareCostsOf, capacityOf, costsOf, cpuFiguresOf, cpuTableOf } from './cpu/cpu-table.ts'
import { measureCpu } from './cpu/measure-cpu.ts'
import { deferStop } from './defer-stop.ts'
import { prepareLoad, warmUp } from './full-load.ts'
import { createConfigured } from './gateway/configured-organization.ts'
import { measureGateway } from './gateway/measure-gateway.ts'
import { measureHeap } from './heap/measure-heap.ts'
import { measureAddedTime } from './latency/added-time.ts'
import { startSender } from './latency/fixed-rate.ts'
import { measureModeration } from './moderation/measure-moderation.ts'
import { startModerated, startRemote } from './moderation/start-moderated.ts'
import { measurePage } from './page/measure-page.ts'
import { measureProcesses } from './processes.ts'
import { measureRules } from './rules/measure-rules.ts'
import { createTwoOrganizations } from './rules/two-organizations.ts'
import type { Run } from './runs/run.ts'
import { measureHeld } from './streams/held.ts'
import { measureIdle } from './streams/idle.ts'
import { measurePaced } from './streams/paced.ts'
import { startStreamSender } from './streams/start-stream-sender.ts'
import { startGatehouse } from './targets/gatehouse.ts'
import { startPortkey } from './targets/portkey.ts'
import { startIfAvailable } from './targets/start-targets.ts'
import type { Target } from './targets/target.ts'
import { traceSender } from './trace/trace-sender.ts'

/** `bare`: what the bare proxy took in each window, of each kind of call: it does the same work in all of them. */
type Outcome = { figures: Figures; bare?: readonly (readonly number[])[] }

const connections = 32
/** What a moderation model over the network takes. */
const scorerMs = 80
const titles = { plain: 'Plain answers', stream: 'Streamed answers, 30 frames' } as const

async function cpu(run: Run): Promise<Outcome> {
  const { upstream, bare, gatehouse, scratch, cleanup, plan } = run
  const portkey = await startIfAvailable(() => startPortkey(upstream.url, scratch), cleanup)
  const targets = [bare, gatehouse, ...portkey]
  const results = await measureCpu({ ...run, targets }, modes)
  const figures: Figures = {}
  const capacity = { plain: NaN, stream: NaN }
  for (const [mode, measured] of results) {
    console.log(`\n${titles[mode]}, ${plan.windows} windows: median (least)`)
    console.log(cpuTableOf(measured))
    console.log('Gatehouse moderates with a scripted scorer here; moderation has rows with others.')
    capacity[mode] = capacityOf(measured)
    const costs = costsOf(measured)
    if (costs) run.known.costs[mode] = costs
    Object.assign(figures, cpuFiguresOf(mode, measured))
  }
  run.known.capacity = capacity
  return { figures, bare: [...results.values()].map(bareCostsOf) }
}

/** What Gatehouse can do, from the section before or measured here. */
async function findCapacity(run: Run): Promise<Record<Mode, number>> {
  if (run.known.capacity) return run.known.capacity
  const capacity = { plain: NaN, stream: NaN }
  for (const mode of modes) {
    for (const target of [run.bare, run.gatehouse]) {
      const load = await prepareLoad(target, { mode, connections, folder: run.folder })
      await warmUp(load, run.plan.warmUpRequests)
      const { requests, seconds } = await load(3)
      capacity[mode] = requests / seconds
    }
  }
  run.known.capacity = capacity
  return capacity
}

async function added(run: Run): Promise<Outcome> {
  const { bare, gatehouse, plan, cleanup } = run
  const capacity = await findCapacity(run)
  const sender = await deferStop(await startSender(), cleanup)
  const options = { bare, gatehouse, capacity, windows: plan.rateWindows }
  if (!run.isTraced) return measureAddedTime({ ...options, sender })
  const tracing = traceSender(sender, gatehouse)
  const outcome = await measureAddedTime({ ...options, sender: tracing.sender })
  tracing.print()
  return outcome
}

async function calm(run: Run): Promise<Outcome> {
  return { figures: await measureCalm(run, await findCapacity(run)) }
}

async function paced(run: Run): Promise<Outcome> {
  const { bare, gatehouse, upstream, plan, cleanup } = run
  await findCapacity(run)
  const sender = await deferStop(await startStreamSender(), cleanup)
  const { remote } = await startRemote(run, scorerMs)
  const targets = [bare, gatehouse, { ...remote, isFresh: true }]
  const {
    figures,
    perFrame,
    bare: costs,
  } = await measurePaced({
    targets,
    upstream,
    sender,
    ...plan,
  })
  run.known.costs.microsecondsPerFrame = Number((perFrame[1] ?? NaN).toFixed(1))
  return { figures, bare: [costs] }
}

async function held(run: Run): Promise<Outcome> {
  await findCapacity(run)
  const sender = await deferStop(await startStreamSender(), run.cleanup)
  await measureHeld(run, sender)
  return { figures: {} }
}

async function page(run: Run): Promise<Outcome> {
  const { remote } = await startRemote(run, scorerMs)
  return { figures: await measurePage({ ...run, remote: { ...remote, isFresh: true } }) }
}

async function idle(run: Run): Promise<Outcome> {
  const { gatehouse, cleanup } = run
  const { stream } = await findCapacity(run)
  const sender = await deferStop(await startStreamSender(), cleanup)
  const { figures, kilobytesPerStream, restMegabytes } = await measureIdle(
    gatehouse,
    sender,
    stream,
  )
  run.known.costs.kilobytesPerStream = Math.round(kilobytesPerStream)
  run.known.costs.megabytesPerProcess = Math.round(restMegabytes)
  return { figures }
}

async function processes(run: Run): Promise<Outcome> {
  const { gatehouse: one, servers, upstream, plan, folder, cleanup } = run
  const { plain } = await findCapacity(run)
  const two = await deferStop(
    await startGatehouse({ upstream: upstream.url, servers, processes: 2 }),
    cleanup,
  )
  for (const url of two.urls) {
    const load = await prepareLoad({ ...two, url }, { mode: 'plain', connections, folder })
    await warmUp(load, plan.warmUpRequests)
  }
  const sender = await deferStop(await startSender(), cleanup)
  const perSecond = Math.round(plain / 2)
  const windows = plan.rateWindows
  const figures = await measureProcesses({ one, two, servers, sender, perSecond, windows })
  await refuseCaveat(two)
  return { figures }
}

async function rules(run: Run): Promise<Outcome> {
  const organizations = await createTwoOrganizations(run.gatehouse)
  const sender = await deferStop(await startSender(), run.cleanup)
  return { figures: await measureRules({ ...run, ...organizations, sender }) }
}

/** Prints only: no goal has been set for it. */
async function moderation(run: Run): Promise<Outcome> {
  const moderated = await startModerated(run)
  await measureModeration({ ...run, ...moderated })
  for (const target of [moderated.local, moderated.remote]) await refuseCaveat(target)
  return { figures: {} }
}

/** Prints only: no goal has been set for it. */
async function gateway(run: Run): Promise<Outcome> {
  const organizations = await createConfigured(run.gatehouse)
  const sender = await deferStop(await startSender(), run.cleanup)
  await measureGateway({ ...run, ...organizations, sender })
  return { figures: {} }
}

/** Prints only: no goal has been set for it. */
async function audit(run: Run): Promise<Outcome> {
  await measureAudit(run)
  return { figures: {} }
}

/** Prints only: it is what the default of the command was chosen by. */
async function heap(run: Run): Promise<Outcome> {
  for (const target of await measureHeap(run)) await refuseCaveat(target)
  return { figures: {} }
}

/** Figures of a target that did other work than it should have are worth nothing. */
async function refuseCaveat({ caveat }: Target) {
  const found = await caveat?.()
  if (found !== undefined) throw new Error(found)
}

/** In the order in which they run: a later one uses what an earlier one has warmed up and measured. */
export const sections = {
  cpu,
  added,
  calm,
  paced,
  page,
  idle,
  held,
  processes,
  rules,
  moderation,
  gateway,
  audit,
  heap,
}
export type SectionName = keyof typeof sections
