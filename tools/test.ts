import { fileURLToPath } from 'node:url'

import { type Rings, runTests } from './testing/run-tests.ts'
import { startTestServers } from './testing/test-servers.ts'

const root = fileURLToPath(new URL('../', import.meta.url))

/** The quick ones first. */
const rings: Rings = {
  unit: { projects: ['unit', 'unit-alone'] },
  integration: { projects: ['integration', 'integration-alone'], startServers: startTestServers },
  acceptance: { projects: ['acceptance', 'acceptance-alone'], startServers: startTestServers },
  counts: { projects: ['counts'] },
}

// Ctrl-C ends vitest too, which has the same terminal; the servers are stopped after it, and no other ring starts.
const interruption = new AbortController()
process.once('SIGINT', () => interruption.abort())
const { signal } = interruption
process.exitCode = await runTests(process.argv.slice(2), { root, rings, signal })
