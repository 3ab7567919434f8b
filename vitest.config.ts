import { availableParallelism } from 'node:os'

import { defineConfig } from 'vitest/config'

import { LongestFirst } from './tools/testing/longest-first.ts'
import { aloneInAcceptance, aloneInIntegration, aloneInUnit } from './tools/testing/test-files.ts'
import { totalsReporter } from './tools/testing/totals-reporter.ts'

const modules = '**/node_modules/**'
const inCounts = 'bench/counts/counts.test.ts'
const inIntegration = '{service,cli}/src/**/*.integration{,.scenario}.test.ts'

/** Enough for a machine that is ten times slower than a quiet one. No test is judged by it. */
const patience = {
  testTimeout: 120_000,
  hookTimeout: 120_000,
  expect: { poll: { timeout: 20_000 } },
}
/** Vitest would leave one core free, which is half of a small machine: these tests compute, and wait for nothing. */
const unit = { ...patience, maxWorkers: Math.max(2, availableParallelism() - 1) }
/** Tests with servers wait for a quarter of their time. More than four stacks would need more connections than the server has. */
const fewMoreThanCores = Math.min(availableParallelism() + 1, 4)
const withTemplate = { globalSetup: ['service/src/testing/migrated-template.ts'] }
const integration = { ...patience, ...withTemplate, maxWorkers: fewMoreThanCores }
/** These start processes of what ships. */
const withProgram = 'tools/testing/built-program.ts'
const acceptance = { ...patience, globalSetup: [...withTemplate.globalSetup, withProgram] }

/** Rings: nothing, real servers in one process, started processes over TCP, and what one call makes them do. */
export default defineConfig({
  test: {
    reporters: ['default', totalsReporter],
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          ...unit,
          name: 'unit',
          include: ['{contract,service,cli,console,tools,bench}/**/*.test.ts'],
          exclude: [inIntegration, inCounts, ...aloneInUnit, modules],
          isolate: false,
        },
      },
      { test: { ...unit, name: 'unit-alone', include: aloneInUnit } },
      {
        test: {
          ...integration,
          name: 'integration',
          include: [inIntegration],
          exclude: [...aloneInIntegration, modules],
          isolate: false,
        },
      },
      { test: { ...integration, name: 'integration-alone', include: aloneInIntegration } },
      {
        test: {
          ...acceptance,
          name: 'acceptance',
          include: ['acceptance/**/*.test.ts'],
          exclude: [...aloneInAcceptance, modules],
          maxWorkers: fewMoreThanCores,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...acceptance,
          name: 'acceptance-alone',
          include: aloneInAcceptance,
          fileParallelism: false,
          sequence: { groupOrder: 2 },
        },
      },
      { test: { ...patience, name: 'counts', include: [inCounts], globalSetup: [withProgram] } },
    ],
  },
})
