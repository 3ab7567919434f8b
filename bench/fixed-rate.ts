import { startChild } from './child.ts'
import type { Order } from './fixed-rate-sender.ts'
import { headerSets } from './header-sets.ts'
import type { Target } from './target.ts'

export type Percentiles = { p50: number; p99: number; p999: number }

type Wish = Pick<Order, 'mode' | 'perSecond' | 'seconds'>
type Outcome = { times: number[]; problem?: string }

/** One sender for the whole run: its code is warm when it counts. */
export async function startSender() {
  const { child, stop } = await startChild(new URL('fixed-rate-sender.ts', import.meta.url))
  return {
    stop,
    async send(target: Target, wish: Wish): Promise<Percentiles> {
      const { name, url } = target
      const order: Order = { name, url, headerSets: headerSets(target), ...wish }
      const { times, problem } = await new Promise<Outcome>((resolve) => {
        const end = () => resolve({ times: [], problem: 'The sender ended.' })
        child.once('exit', end)
        child.once('message', (outcome) => {
          child.off('exit', end)
          resolve(outcome as Outcome)
        })
        child.send(order)
      })
      if (problem) throw new Error(problem)
      return percentilesOf(times)
    },
  }
}

export type Sender = Awaited<ReturnType<typeof startSender>>

function percentilesOf(times: readonly number[]): Percentiles {
  const sorted = times.toSorted((left, right) => left - right)
  const at = (share: number) => sorted[Math.ceil(sorted.length * share) - 1] ?? Infinity
  return { p50: at(0.5), p99: at(0.99), p999: at(0.999) }
}
