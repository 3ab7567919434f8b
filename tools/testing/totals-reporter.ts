import { writeFileSync } from 'node:fs'

import type { Reporter } from 'vitest/node'

export type Failure = { file: string; test: string; message: string }

/** What one run of vitest came to. `errors` are those that belong to no test: each of them fails the run. */
export type Totals = {
  passed: number
  failed: number
  skipped: number
  failures: Failure[]
  errors: string[]
}

export const noTests = (): Totals => ({
  passed: 0,
  failed: 0,
  skipped: 0,
  failures: [],
  errors: [],
})

/** The variable that names the file for the totals. Without it nothing is written. */
export const totalsVariable = 'TEST_TOTALS_FILE'

/** vitest counts tests only. An error in a hook, on import, or that no test waited for is none of them. */
export const totalsReporter: Reporter = {
  onTestRunEnd(modules, unhandledErrors) {
    const file = process.env[totalsVariable]
    if (!file) return
    const totals = noTests()
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const result = test.result()
        const outcome = countedAs(result.state)
        totals[outcome] += 1
        if (outcome !== 'failed') continue
        const message = result.errors?.[0]?.message ?? 'It was cut off.'
        totals.failures.push({ file: module.relativeModuleId, test: test.fullName, message })
      }
      for (const suite of [module, ...module.children.allSuites()]) {
        const errors = suite.errors().map(({ message }) => `${module.relativeModuleId}: ${message}`)
        totals.errors.push(...errors)
      }
    }
    totals.errors.push(...unhandledErrors.map(({ message }) => `unhandled error: ${message}`))
    writeFileSync(file, JSON.stringify(totals))
  },
}

const countedAs = (state: 'passed' | 'failed' | 'skipped' | 'pending') =>
  // A test that has not ended by now was cut off.
  state === 'pending' ? 'failed' : state
