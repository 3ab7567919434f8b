import type { Figure, Figures } from '../budget/goals.ts'
import type { Mode } from '../chat-call.ts'
import { toTable } from '../table.ts'
import type { Result, Window } from './measure-cpu.ts'

type Part = keyof Window

export const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((left, right) => left - right)
  const middle = Math.floor(sorted.length / 2)
  const [low = NaN, high = NaN] = [sorted[middle - 1], sorted[middle]]
  return sorted.length % 2 === 1 ? high : (low + high) / 2
}

const medianOf = ({ windows }: Result, part: Part) => median(windows.map((one) => one[part]))
export const leastOf = ({ windows }: Result, part: Part) =>
  Math.min(...windows.map((one) => one[part]))

export const capacityOf = (results: readonly Result[]) => {
  const gatehouse = results.find(({ name }) => name === 'Gatehouse')
  return gatehouse ? medianOf(gatehouse, 'perSecond') : NaN
}

/** Medians and, in brackets, the least of all windows; the ratios are of medians, with the bare proxy as 1. */
export function cpuTableOf(results: readonly Result[]): string {
  const bare = findBare(results)
  const ratio = (result: Result, part: Part) =>
    (medianOf(result, part) / medianOf(bare, 'service')).toFixed(2)
  const both = (result: Result, part: Part) =>
    `${medianOf(result, part).toFixed(0)} (${leastOf(result, part).toFixed(0)})`
  const rows = results.map((result) => {
    const hasStores = result.name.startsWith('Gatehouse')
    return [
      result.name,
      medianOf(result, 'perSecond').toFixed(0),
      both(result, 'service'),
      ratio(result, 'service'),
      hasStores ? both(result, 'worker') : '',
      hasStores ? ratio(result, 'worker') : '',
      hasStores ? both(result, 'postgres') : '',
      hasStores ? ratio(result, 'postgres') : '',
      hasStores ? both(result, 'redis') : '',
      hasStores ? ratio(result, 'redis') : '',
      both(result, 'upstream'),
      result.memoryMegabytes.toFixed(0),
    ]
  })
  return toTable([heading, ...rows])
}

const heading = [
  '',
  'requests/s',
  'CPU µs',
  '÷ bare',
  'worker µs',
  '÷ bare',
  'PostgreSQL µs',
  '÷ bare',
  'Redis µs',
  '÷ bare',
  'upstream µs',
  'memory MB',
]

function findBare(results: readonly Result[]): Result {
  const bare = results.find(({ name }) => name === 'bare proxy')
  if (!bare) throw new Error('The bare proxy was not measured.')
  return bare
}

/** What a call took the bare proxy in each window. */
export const bareCostsOf = (results: readonly Result[]) =>
  findBare(results).windows.map(({ service }) => service)

/** The figures that have a goal: of the least windows, because other programs can only add to the time of a call. */
export function cpuFiguresOf(mode: Mode, results: readonly Result[]): Figures {
  const find = (name: string) => results.find((result) => result.name === name)
  const [gatehouse, portkey, bare] = [find('Gatehouse'), find('Portkey'), findBare(results)]
  if (!gatehouse) return {}
  const against = (part: Part, other: Result): Figure => ({
    value: leastOf(gatehouse, part) / leastOf(other, 'service'),
    median: medianOf(gatehouse, part) / medianOf(other, 'service'),
  })
  return {
    [`${mode}Cpu`]: against('service', bare),
    [`${mode}Postgres`]: against('postgres', bare),
    [`${mode}Worker`]: against('worker', bare),
    [`${mode}Redis`]: against('redis', bare),
    ...(portkey && { [`${mode}Portkey`]: against('service', portkey) }),
    memory: { value: gatehouse.memoryMegabytes },
  }
}

/** Microseconds per request, by mode, for the costs that the scale table is computed from. */
export function costsOf(results: readonly Result[]) {
  const gatehouse = results.find(({ name }) => name === 'Gatehouse')
  if (!gatehouse) return undefined
  const round = (part: Part) => Math.round(medianOf(gatehouse, part))
  return {
    bare: Math.round(medianOf(findBare(results), 'service')),
    service: round('service'),
    worker: round('worker'),
    postgres: round('postgres'),
    redis: round('redis'),
  }
}
