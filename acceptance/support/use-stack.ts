import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { type Stack, type StackOptions, startStack } from '@gatehouse/tools/start-stack'
import { afterAll, beforeAll, expect, vi } from 'vitest'

// Timeouts only detect a hang: a busy machine must not fail a test.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

/** Tests send this text in place of secrets and private data; it must never be logged. */
export const canary = 'canary-7f3a9c'

/** One stack for a whole test file. After the tests its logs are searched for secrets. */
export function useStack(options: StackOptions = {}): () => Stack {
  let stack: Stack | undefined
  beforeAll(async () => {
    const template = process.env['TEST_DATABASE_TEMPLATE']
    stack = await startStack({ ...(template !== undefined && { template }), ...options })
  })
  afterAll(async () => {
    if (!stack) return
    const logs = await readLogs(stack.folder)
    await stack.stop()
    expect(logs.length, 'the processes wrote no log').toBeGreaterThan(0)
    expect(logs).not.toMatch(/gate_(adm|prj|ses|lnk|inv|dev)_[0-9A-Za-z]{40}/)
    expect(logs).not.toContain(canary)
  })
  return () => {
    if (!stack) throw new Error('The stack is not running yet.')
    return stack
  }
}

async function readLogs(folder: string): Promise<string> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.log'))
  return (await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')))).join('')
}
