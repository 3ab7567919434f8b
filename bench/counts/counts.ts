import { readOptions } from '@gatehouse/tools/help/read-options'

import { countsTableOf, cpuLimits, judge } from './guards.ts'
import { measureCounts } from './measure-counts.ts'

// `./dev bench --counts`: counts that no other program on the machine can change, so that they can be guarded. With
// `--json` the verdicts are printed for the test of the same name, and the exit code says nothing about them.

async function run() {
  const { values: options } = readOptions('bench --counts', {
    options: { json: { type: 'boolean' } },
  })
  await using cleanup = new AsyncDisposableStack()
  const stopEarly = () => void cleanup.disposeAsync()
  process.once('SIGINT', stopEarly).once('SIGTERM', stopEarly)
  const measured = await measureCounts(cleanup, cpuLimits)
  const verdicts = judge(measured)
  const { details } = measured
  if (options.json) return void process.stdout.write(JSON.stringify({ verdicts, details }))
  console.log(`${countsTableOf(verdicts)}\n\n${details.join('\n')}`)
  const exceeded = verdicts.filter(({ holds }) => !holds)
  for (const { what, value, guard } of exceeded) {
    console.error(`bench: ${what}: ${value} instead of ${guard}.`)
  }
  if (exceeded.length > 0) process.exitCode = 1
  return undefined
}

try {
  await run()
} catch (error) {
  console.error(`bench: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
}
