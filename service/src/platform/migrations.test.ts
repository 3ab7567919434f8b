import { readdirSync, readFileSync } from 'node:fs'

import { describe, expect, test } from 'vitest'

import { migrationsFolder as folder } from './assets.ts'
import { findMismatch, numberOf, readOldestRelease } from './migrations.ts'

const fitting = { release: '0011', missing: [], newer: [], oldestRelease: '0010' }

test('a release runs with its own schema, with an older one that it waits for, and with newer ones that allow it', () => {
  expect(findMismatch(fitting)).toBeNull()
  expect(findMismatch({ ...fitting, missing: ['0011_b.sql'] })).toBeNull()
  expect(findMismatch({ ...fitting, oldestRelease: null, newer: ['0012_c.sql'] })).toBeNull()
  expect(findMismatch({ ...fitting, oldestRelease: '0011', newer: ['0012_c.sql'] })).toBeNull()
})

describe('refused, with what to do', () => {
  test('a schema that needs a newer release', () => {
    const newer = ['0012_c.sql', '0013_d.sql']
    expect(findMismatch({ ...fitting, oldestRelease: '0012', newer })).toBe(
      'The database was migrated by a newer release (0013_d.sql) and works with releases since 0012; this one is 0011. ' +
        'Start a release that has the migration 0012. Migrations are not undone: to return to this release, restore a ' +
        'backup from before that migration.',
    )
  })

  test('a schema of another line of releases', () => {
    const mismatch = findMismatch({ ...fitting, missing: ['0011_b.sql'], newer: ['0011_x.sql'] })
    expect(mismatch).toMatch(/^The database has the migration 0011_x.sql, .* lacks 0011_b.sql/)
  })
})

test('the first line of a migration says which releases work with it; without it none before do', () => {
  const line = '-- Works with releases since 0009'
  expect(readOldestRelease('0012_c.sql', `${line}\n\nselect 1;`)).toBe('0009')
  expect(readOldestRelease('0012_c.sql', `select 1;\n${line}`)).toBe('0012')
  expect(readOldestRelease('0012_c.sql', `${line} or so`)).toBe('0012')
  expect(readOldestRelease('0012_c.sql', '')).toBe('0012')
})

const newMigrations = readdirSync(folder).filter((name) => numberOf(name) > '0010')

test.each(newMigrations)('%s says which releases work with it', (name) => {
  const [first = ''] = readFileSync(new URL(name, folder), 'utf8').split('\n')
  expect(first, 'see the table in migrations.ts').toMatch(/^-- Works with releases since \d{4}$/)
  expect(readOldestRelease(name, first) <= numberOf(name)).toBe(true)
})
