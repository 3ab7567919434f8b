import { type InstalledClient, installClient } from '#support/install-client.ts'

const version = '2.1.323'

export const installClaudeCode = (): Promise<InstalledClient> =>
  installClient({
    name: 'Claude Code',
    package: '@anthropic-ai/claude-code',
    version,
    script: 'cli-wrapper.cjs',
    prints: `${version} (Claude Code)`,
  })
