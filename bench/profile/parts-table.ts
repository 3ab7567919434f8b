import type { Mode } from '../chat-call.ts'
import { toTable } from '../table.ts'
import { type PartName, partOf, parts } from './parts.ts'
import { type Profile, shorten } from './report.ts'

type Node = Profile['nodes'][number]

/** CPU time per request, in microseconds: `mainThread` is the part of `service` that the profile covers. */
export type Measured = { bare: number; service: number; mainThread: number }

/** Names that V8 gives to what no function does. */
const unattributable = new Set(['(program)', '(garbage collector)', '(root)'])
const ignored = new Set(['(idle)'])

/** The share of each part in the busy time of the main thread. */
export function sharesOf({ nodes, samples, timeDeltas }: Profile): Record<PartName, number> {
  const selfOf = new Map<number, number>()
  for (const [index, id] of samples.entries()) {
    selfOf.set(id, (selfOf.get(id) ?? 0) + (timeDeltas[index] ?? 0))
  }
  const nodeOf = new Map(nodes.map((node) => [node.id, node]))
  const times = Object.fromEntries(Object.keys(parts).map((name) => [name, 0])) as Record<
    PartName,
    number
  >
  const walk = (node: Node, caller: PartName) => {
    const { functionName, url } = node.callFrame
    const file = url === '' ? '' : shorten(url)
    if (ignored.has(functionName) || file === 'node:inspector') return
    const part = unattributable.has(functionName) ? 'other' : partOf(file, caller)
    times[part] += selfOf.get(node.id) ?? 0
    for (const id of node.children ?? []) {
      const child = nodeOf.get(id)
      if (child) walk(child, part)
    }
  }
  const [root] = nodes
  if (root) walk(root, 'other')
  const all = Object.values(times).reduce((sum, time) => sum + time, 0)
  for (const name of Object.keys(times) as PartName[]) times[name] /= all
  return times
}

/** Microseconds per request and, with the bare proxy as 100, the share beside its budget. */
export function partsTableOf(mode: Mode, profile: Profile, measured: Measured): string {
  const { bare, service, mainThread } = measured
  const shares = sharesOf(profile)
  const rows = (Object.keys(parts) as PartName[]).map((name) => {
    const others = name === 'other' ? service - mainThread : 0
    const microseconds = shares[name] * mainThread + others
    return row(parts[name].what, microseconds, parts[name][mode], bare)
  })
  const budget = Object.values(parts).reduce((sum, part) => sum + part[mode], 0)
  return toTable([
    [`${mode} answers`, 'µs', 'bare = 100', 'budget', ''],
    ...rows,
    row('all', service, budget, bare),
  ])
}

function row(what: string, microseconds: number, budget: number, bare: number): string[] {
  const ratio = (100 * microseconds) / bare
  const verdict = ratio <= budget ? 'holds' : 'MISSES'
  return [what, microseconds.toFixed(0), ratio.toFixed(0), String(budget), verdict]
}
