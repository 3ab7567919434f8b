import { defineConfig } from 'vitest/config'

/** Long tests that neither measure nor depend on how fast anything is. */
const patient = [
  'acceptance/{credits,publish}-killed.test.ts',
  'acceptance/{random-inputs,policy-model}.test.ts',
]

/** Three rings: nothing, real servers in one process, started processes over TCP. */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['{contract,service,cli,tools}/**/*.test.ts'],
          exclude: ['**/*.integration.test.ts', '**/node_modules/**'],
        },
      },
      {
        test: {
          name: 'integration',
          include: ['{service,cli}/src/**/*.integration.test.ts'],
          globalSetup: ['service/src/testing/migrated-template.ts'],
          testTimeout: 30_000,
          hookTimeout: 30_000,
          maxWorkers: 2,
        },
      },
      {
        test: {
          name: 'acceptance',
          include: ['acceptance/**/*.test.ts'],
          exclude: [...patient, '**/node_modules/**'],
          // These tests measure and kill: side by side they would disturb each other's figures.
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'patient',
          include: patient,
          maxWorkers: 2,
          testTimeout: 120_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
})
