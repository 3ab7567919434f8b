import { readFile, writeFile } from 'node:fs/promises'

const file = new URL('../../bench/costs.json', import.meta.url)

/** Microseconds of CPU time per request, of a bare proxy and of the four parts of Gatehouse. */
export type RequestCosts = {
  bare: number
  service: number
  /** Null: not measured on this machine yet; the stages use the goal then. */
  worker: number | null
  postgres: number
  redis: number
}

/** What was measured last. Streamed answers have 30 frames. */
export type Costs = {
  measuredOn: string
  machine: string
  plain: RequestCosts
  stream: RequestCosts
  microsecondsPerFrame: number
  /** Null: not measured on this machine yet; the stages use the goal then. */
  kilobytesPerStream: number | null
  megabytesPerProcess: number
}

export const readCosts = async () => JSON.parse(await readFile(file, 'utf8')) as Costs

export const writeCosts = (costs: Costs) => writeFile(file, `${JSON.stringify(costs, null, 2)}\n`)
