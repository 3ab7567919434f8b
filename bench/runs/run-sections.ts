import { loadavg } from 'node:os'

import { budgetTableOf } from '../budget/budget-table.ts'
import { type SectionName, sections } from '../sections.ts'
import { describeNoise, spreadOf } from './noise.ts'
import { type Attempt, repeatIfNoisy } from './repeat-if-noisy.ts'
import { runEach } from './run-each.ts'
import type { Run } from './run.ts'
import { watchMachine } from './watch-machine.ts'

/** Runs the sections one after another and prints the figures of those that succeeded. Returns the names of the others. */
export async function runSections(run: Run, chosen: readonly SectionName[]): Promise<string[]> {
  const { figures, failed } = await runEach(chosen, {
    attempt: (name) => repeatIfNoisy(() => runSection(run, name), run.plan),
    isInterrupted: () => run.cleanup.disposed,
  })
  if (Object.keys(figures).length > 0) console.log(`\n${budgetTableOf(figures)}`)
  return failed
}

const describeLoad = () => `load ${loadavg()[0]?.toFixed(1)}`

/** What a section has started ends with it, so that it takes nothing of the next. */
async function runSection(run: Run, name: SectionName): Promise<Attempt> {
  console.log(`\n-- ${name}; ${describeLoad()}`)
  await using own = new AsyncDisposableStack()
  run.cleanup.use(own)
  const lossesBefore = await run.gatehouse.countRedisLosses()
  const readOthers = await watchMachine()
  const { figures, bare = [] } = await sections[name]({ ...run, cleanup: own })
  const noise = { othersShare: await readOthers(), bareSpread: spreadOf(bare) }
  console.log(`-- ${name}; ${describeLoad()}, ${describeNoise(noise)}`)
  const losses = (await run.gatehouse.countRedisLosses()) - lossesBefore
  // Counting limits in memory is different work, and its figures are worth nothing.
  if (losses > 0) throw new Error(`Gatehouse took Redis for away ${losses} times.`)
  return { figures, noise }
}
