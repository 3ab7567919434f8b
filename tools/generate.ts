import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'

import { endpoints } from '@gatehouse/contract/endpoints'
import { toErrorPage } from '@gatehouse/contract/error-page'
import { toOpenApi } from '@gatehouse/contract/openapi'

import { toCompatibilityPage } from './compatibility-page.ts'
import { readOptions } from './help/read-options.ts'
import { readCosts } from './scale/costs.ts'
import { fillTables, scaleTables } from './scale/scale-tables.ts'
import { toEndpointTable } from './specification/endpoint-table.ts'
import { toRoleTable } from './specification/role-table.ts'
import { createMigratedDatabase } from './throwaway-database.ts'

const root = new URL('../', import.meta.url)

/** The path of every generated file, and the function that returns its text. */
const generated: Record<string, () => Promise<string> | string> = {
  'cli/src/operations.json': printOperations,
  'docs/openapi.json': () => `${JSON.stringify(toOpenApi(endpoints), null, 2)}\n`,
  'docs/compatibility.md': toCompatibilityPage,
  'docs/errors.md': () => toErrorPage(endpoints),
  'docs/scale.md': printScalePage,
  'docs/specification/README.md': printSpecification,
  'docs/specification/authentication.md': printAuthentication,
  'service/src/platform/database-types.ts': printDatabaseTypes,
}

/** What the command line client shows without loading the contract. */
function printOperations(): string {
  const guarded = endpoints.filter(({ permission }) => permission !== null)
  const operations = guarded.map(({ id, summary }) => ({ id, summary }))
  return `${JSON.stringify(operations, null, 2)}\n`
}

/** Only its tables are generated: they follow from what was measured last. */
async function printScalePage(): Promise<string> {
  const page = await readFile(new URL('docs/scale.md', root), 'utf8')
  return fillTables(page, scaleTables(await readCosts()))
}

/** Only its table of endpoints is generated. */
async function printSpecification(): Promise<string> {
  const page = await readFile(new URL('docs/specification/README.md', root), 'utf8')
  return fillTables(page, { endpoints: toEndpointTable(endpoints) })
}

/** Only its table of roles is generated. */
async function printAuthentication(): Promise<string> {
  const page = await readFile(new URL('docs/specification/authentication.md', root), 'utf8')
  return fillTables(page, { roles: toRoleTable(endpoints) })
}

/** Row types as the migrated database has them, enumerations as unions. */
async function printDatabaseTypes(): Promise<string> {
  await using database = await createMigratedDatabase('types')
  const command = new URL('service/node_modules/.bin/kysely-codegen', root).pathname
  const { stdout } = await promisify(execFile)(command, [
    '--dialect',
    'postgres',
    '--url',
    database.url,
    '--print',
    '--exclude-pattern',
    'kysely_*',
    '--log-level',
    'silent',
  ])
  return `// Generated from the migrated database by ./dev generate. Do not edit.\n${stdout}`
}

/** With `--check` nothing is written; files that differ are named and fail the command. */
async function run(isCheck: boolean): Promise<number> {
  const stale: string[] = []
  for (const [path, print] of Object.entries(generated)) {
    const file = new URL(path, root)
    const text = await print()
    const current = await readFile(file, 'utf8').catch(() => '')
    if (current === text) continue
    stale.push(path)
    if (!isCheck) await writeFile(file, text)
  }
  if (stale.length === 0) console.log('Generated files are up to date.')
  else if (isCheck) console.error(`Out of date, run ./dev generate: ${stale.join(', ')}`)
  else console.log(`Wrote ${stale.join(', ')}`)
  return isCheck && stale.length > 0 ? 1 : 0
}

const { values } = readOptions('generate', { options: { check: { type: 'boolean' } } })
process.exitCode = await run(values.check ?? false)
