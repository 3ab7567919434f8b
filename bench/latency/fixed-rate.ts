import { headerSets } from '../header-sets.ts'
import { startChild } from '../targets/child.ts'
import type { Target } from '../targets/target.ts'
import type { Job, Times } from './fixed-rate-sender.ts'

type Rate = Pick<Job, 'mode' | 'perSecond' | 'seconds'>
type Outcome = { times: Times; problem?: string }

/** Starts one sender for the whole run, so that its code is warm when measuring starts. */
export async function startSender() {
  const { child, stop } = await startChild(new URL('fixed-rate-sender.ts', import.meta.url))
  return {
    stop,
    async send(target: Target, rate: Rate): Promise<Times> {
      const { name, url, urls = [url] } = target
      const job: Job = { name, urls, headerSets: headerSets(target), ...rate }
      const { times, problem } = await new Promise<Outcome>((resolve) => {
        const none = { first: [], whole: [] }
        const end = () => resolve({ times: none, problem: 'The sender exited.' })
        child.once('exit', end)
        child.once('message', (outcome) => {
          child.off('exit', end)
          resolve(outcome as Outcome)
        })
        child.send(job)
      })
      if (problem) throw new Error(problem)
      return times
    },
  }
}

export type Sender = Awaited<ReturnType<typeof startSender>>

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((left, right) => left - right)
  return sorted[Math.ceil(sorted.length * share) - 1] ?? NaN
}
