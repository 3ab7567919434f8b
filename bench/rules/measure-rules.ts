import type { Figures } from '../budget/goals.ts'
import { type Mode, modes } from '../chat-call.ts'
import { cpuTableOf, leastOf } from '../cpu/cpu-table.ts'
import { type CpuBench, measureCpu, type Result } from '../cpu/measure-cpu.ts'
import { type FirstToken, printFirstToken } from '../latency/first-token.ts'
import type { Sender } from '../latency/fixed-rate.ts'
import type { Target } from '../targets/target.ts'

/** The order in which they take turns. */
type Compared<Measured> = { bare: Measured; without: Measured; ruled: Measured }
type Options = Omit<CpuBench, 'targets'> & Compared<Target> & { sender: Sender }

/** What exact rules add to a call: one process serves an organization with rules and one without in turn. */
export async function measureRules(options: Options): Promise<Figures> {
  const { bare, without, ruled } = options
  const results = await measureCpu({ ...options, targets: [bare, without, ruled] }, modes)
  const figures: Figures = {}
  for (const [mode, measured] of results) {
    console.log(`\nExact rules, ${mode}, ${options.plan.windows} windows: median (least)`)
    console.log(cpuTableOf(measured))
    Object.assign(figures, addedCpuOf(mode, byTarget(measured)))
  }
  const { ruled: streamed } = byTarget(results.get('stream') ?? [])
  const none = { p50: NaN, p99: NaN }
  const [ofBare = none, ofWithout = none, ofRuled = none] = await printFirstToken(
    [bare, without, ruled],
    streamed,
    options,
  )
  const firstToken = addedFirstTokenOf({ bare: ofBare, without: ofWithout, ruled: ofRuled })
  return { ...figures, ...firstToken }
}

function byTarget([bare, without, ruled]: readonly Result[]): Compared<Result> {
  if (!bare || !without || !ruled) throw new Error('Not every target was measured.')
  return { bare, without, ruled }
}

/** Of the least windows, because other programs can only add to the time of a call. */
export function addedCpuOf(mode: Mode, { bare, without, ruled }: Compared<Result>): Figures {
  const added = leastOf(ruled, 'service') - leastOf(without, 'service')
  const name = mode === 'plain' ? 'rulesPlainCpu' : 'rulesStreamCpu'
  return { [name]: { value: added / leastOf(bare, 'service') } }
}

/** Less than three times what the machine itself delays one call in a hundred cannot be told from it. */
export function addedFirstTokenOf({ bare, without, ruled }: Compared<FirstToken>): Figures {
  const added = ruled.p99 - without.p99
  const jitter = bare.p99 - bare.p50
  return { rulesFirstTokenP99: { value: added, holds: added <= 3 || added <= 3 * jitter } }
}
