import { availableParallelism, cpus } from 'node:os'

/** How long something took, and how much of the machine was busy meanwhile, from 0 to 1. */
export type CoreUsage = { seconds: number; busy: number }

/** Measures from now on, all processes of the machine together. */
export function watchCores(): () => CoreUsage {
  const startedAt = performance.now()
  const before = readTimes()
  return () => {
    const after = readTimes()
    const all = after.all - before.all
    const busy = all > 0 ? 1 - (after.idle - before.idle) / all : 0
    return { seconds: (performance.now() - startedAt) / 1000, busy }
  }
}

function readTimes() {
  const times = cpus().map((core) => core.times)
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
  return {
    idle: sum(times.map(({ idle }) => idle)),
    all: sum(times.flatMap((time) => Object.values(time))),
  }
}

export const describeUsage = (name: string, { seconds, busy }: CoreUsage): string =>
  `${name}: ${seconds.toFixed(0)} s, ${(busy * 100).toFixed(0)} % of ${availableParallelism()} cores busy`
