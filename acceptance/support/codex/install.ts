import { type InstalledClient, installClient } from '#support/install-client.ts'

const version = '0.166.0'

export const installCodex = (): Promise<InstalledClient> =>
  installClient({
    name: 'Codex',
    package: '@openai/codex',
    version,
    script: 'bin/codex.js',
    prints: `codex-cli ${version}`,
  })
