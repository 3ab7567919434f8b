import { fileURLToPath } from 'node:url'

import { type Rings, runTests } from './testing/run-tests.ts'

const root = fileURLToPath(new URL('../', import.meta.url))

/** The quick ones first. */
const rings: Rings = {
  unit: ['unit', 'unit-alone'],
  integration: ['integration', 'integration-alone'],
  acceptance: ['acceptance', 'acceptance-alone'],
  counts: ['counts'],
}

process.exitCode = await runTests(process.argv.slice(2), { root, rings })
