import { writeFileSync } from 'node:fs'

import type { Reporter } from 'vitest/node'

export type Failure = { file: string; test: string; message: string }

/** An error that belongs to no test: in a hook or on import of a file, or one that no test waited for. It fails the run. */
export type OutsideError = { file?: string; message: string }

export type Counts = { passed: number; failed: number; skipped: number }

/** What one run of vitest came to. */
export type Totals = {
  /** By file. */
  counts: Record<string, Counts>
  failures: Failure[]
  errors: OutsideError[]
}

export const noCounts = (): Counts => ({ passed: 0, failed: 0, skipped: 0 })
export const noTests = (): Totals => ({ counts: {}, failures: [], errors: [] })

/** The variable that names the file for the totals. Without it nothing is written. */
export const totalsVariable = 'TEST_TOTALS_FILE'

/** vitest counts tests only. An error in a hook, on import, or that no test waited for is none of them. */
export const totalsReporter: Reporter = {
  onTestRunEnd(modules, unhandledErrors) {
    const file = process.env[totalsVariable]
    if (!file) return
    const totals = noTests()
    for (const module of modules) {
      const moduleFile = module.relativeModuleId
      const counts = (totals.counts[moduleFile] = noCounts())
      for (const test of module.children.allTests()) {
        const result = test.result()
        const outcome = countedAs(result.state)
        counts[outcome] += 1
        if (outcome !== 'failed') continue
        const message = result.errors?.[0]?.message ?? 'It was cut off.'
        totals.failures.push({ file: moduleFile, test: test.fullName, message })
      }
      for (const suite of [module, ...module.children.allSuites()]) {
        totals.errors.push(...suite.errors().map(({ message }) => ({ file: moduleFile, message })))
      }
    }
    totals.errors.push(
      ...unhandledErrors.map(({ message }) => ({ message: `unhandled error: ${message}` })),
    )
    writeFileSync(file, JSON.stringify(totals))
  },
}

const countedAs = (state: 'passed' | 'failed' | 'skipped' | 'pending') =>
  // A test that has not ended by now was cut off.
  state === 'pending' ? 'failed' : state
