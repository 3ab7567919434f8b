import type { Costs } from './costs.ts'
import {
  callMicroseconds,
  kilobytesOf,
  loads,
  type Stage,
  stageOf,
  workerMicroseconds,
} from './stages.ts'

const number = (value: number) =>
  new Intl.NumberFormat('en-US', { maximumSignificantDigits: value < 10 ? 2 : 3 }).format(value)

const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`

function table(rows: readonly (readonly string[])[]): string {
  const [heading = [], ...others] = rows
  return [line(heading), line(heading.map(() => '---')), ...others.map(line)].join('\n')
}

function costTable(costs: Costs): string {
  const { plain, stream } = costs
  const cells = (value: number, bare: number) => [number(value), number(value / bare)]
  const row = (what: string, part: 'bare' | 'service' | 'postgres' | 'redis') => [
    what,
    ...[plain, stream].flatMap((one) => cells(one[part], one.bare)),
  ]
  const isMeasured = plain.worker !== null && stream.worker !== null
  const worker = [
    isMeasured ? 'worker' : 'worker (its goal: not measured yet)',
    ...cells(workerMicroseconds(costs, 'plain'), plain.bare),
    ...cells(workerMicroseconds(costs, 'stream'), stream.bare),
  ]
  return table([
    ['CPU time per request', 'plain, µs', '÷ bare proxy', 'streamed, µs', '÷ bare proxy'],
    row('bare proxy, for comparison', 'bare'),
    row('service', 'service'),
    worker,
    row('PostgreSQL', 'postgres'),
    row('Redis', 'redis'),
  ])
}

const columns: readonly (readonly [string, (stage: Stage) => string])[] = [
  ['requests/s', ({ perSecond }) => number(perSecond)],
  ['cells', ({ cells }) => number(cells)],
  ['calls in flight', ({ inFlight }) => number(inFlight)],
  ['busy cores, service', ({ serviceCores }) => number(serviceCores)],
  ['processes', ({ processes }) => number(processes)],
  ['busy cores, workers', ({ workerCores }) => number(workerCores)],
  ['workers', ({ workers }) => number(workers)],
  ['busy cores, PostgreSQL', ({ postgresCores }) => number(postgresCores)],
  ['primaries', ({ primaries }) => number(primaries)],
  ['busy cores, Redis', ({ redisCores }) => number(redisCores)],
  ['Redis primaries', ({ redisPrimaries }) => number(redisPrimaries)],
  ['connections to a primary', ({ connectionsPerPrimary }) => number(connectionsPerPrimary)],
  ['memory of processes, GB', ({ memoryGigabytes }) => number(memoryGigabytes)],
  ['ledger rows a day', ({ rowsPerDay }) => number(rowsPerDay)],
]

/** One column for each load. */
function stageTable(costs: Costs): string {
  const stages = loads.map((perSecond) => stageOf(perSecond, costs))
  const rows = columns.map(([name, read]) => [name, ...stages.map(read)])
  return table(rows)
}

const describeStream = (costs: Costs) =>
  `${number(kilobytesOf(costs))} KB${costs.kilobytesPerStream === null ? ' (its goal: not measured yet)' : ''}`

/** The tables of docs/scale.md by the name of their place. */
export const scaleTables = (costs: Costs): Record<string, string> => ({
  costs: `${costTable(costs)}

Measured on ${costs.measuredOn} (${costs.machine}). A paced frame costs ${number(costs.microsecondsPerFrame)} µs, an open silent stream ${describeStream(costs)}, a process without calls ${number(costs.megabytesPerProcess)} MB. The call of the stages costs the service ${number(callMicroseconds(costs))} µs.`,
  stages: stageTable(costs),
})

/** Replaces what stands between the marks of each table. */
export function fillTables(page: string, tables: Record<string, string>): string {
  return Object.entries(tables).reduce((text, [name, table]) => {
    const [begin, end] = [`<!-- ${name}: printed by ./dev generate -->`, `<!-- end of ${name} -->`]
    const [before, rest] = text.split(begin)
    const after = rest?.split(end)[1]
    if (before === undefined || after === undefined) {
      throw new Error(`The page has no place for the table '${name}'.`)
    }
    return `${before}${begin}\n\n${table}\n\n${end}${after}`
  }, page)
}
