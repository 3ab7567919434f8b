import type { Job } from './fixed-rate-sender.ts'
import { headerSets } from './header-sets.ts'
import { startChild } from './targets/child.ts'
import type { Target } from './targets/target.ts'

export type Percentiles = { p50: number; p99: number; p999: number }

type Rate = Pick<Job, 'mode' | 'perSecond' | 'seconds'>
type Outcome = { times: number[]; problem?: string }

/** Starts one sender for the whole run, so that its code is warm when measuring starts. */
export async function startSender() {
  const { child, stop } = await startChild(new URL('fixed-rate-sender.ts', import.meta.url))
  return {
    stop,
    async send(target: Target, rate: Rate): Promise<Percentiles> {
      const { name, url } = target
      const job: Job = { name, url, headerSets: headerSets(target), ...rate }
      const { times, problem } = await new Promise<Outcome>((resolve) => {
        const end = () => resolve({ times: [], problem: 'The sender exited.' })
        child.once('exit', end)
        child.once('message', (outcome) => {
          child.off('exit', end)
          resolve(outcome as Outcome)
        })
        child.send(job)
      })
      if (problem) throw new Error(problem)
      return percentilesOf(times)
    },
  }
}

export type Sender = Awaited<ReturnType<typeof startSender>>

function percentilesOf(times: readonly number[]): Percentiles {
  const sorted = times.toSorted((left, right) => left - right)
  const at = (quantile: number) => sorted[Math.ceil(sorted.length * quantile) - 1] ?? Infinity
  return { p50: at(0.5), p99: at(0.99), p999: at(0.999) }
}
