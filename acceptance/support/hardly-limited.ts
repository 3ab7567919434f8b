import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll } from 'vitest'

const many = {
  requests_per_minute: 1_000_000,
  requests_per_day: 1_000_000,
  concurrent_requests: 1000,
}

/** A LIMITS_FILE for tests that are about something else and call more often than a tier allows. */
export function hardlyLimited(): { LIMITS_FILE: string } {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-limits-'))
  afterAll(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'limits.json')
  const limits = { organization: many, project: many, key: many }
  // A process learns a little later than the test what an organization has paid.
  writeFileSync(file, JSON.stringify({ free: limits, tier_5: limits }))
  return { LIMITS_FILE: file }
}
