import { connectDatabase } from '#platform/database.ts'
import { migrate, type Migrated } from '#platform/migrations.ts'

import { loadMigrationConfig } from './config.ts'
import { explainCommandFailure, requireSettings } from './operator/explain-failure.ts'

function describeMigrated({ applied, newer }: Migrated): string {
  if (newer.length > 0) {
    return `nothing to do: the schema is of a newer release (${newer.at(-1)}), and works with this one`
  }
  return applied.length === 0 ? 'nothing to do' : `applied ${applied.join(', ')}`
}

// Applies the migrations and exits. Any number of processes may run it at any time.
try {
  // eslint-disable-next-line node/no-process-env
  const environment = process.env
  requireSettings(['DATABASE_URL'], environment)
  const { DATABASE_URL } = loadMigrationConfig(environment)
  const db = connectDatabase({ url: DATABASE_URL, poolSize: 2, statementTimeoutMs: 0 })
  const migrated = await migrate(db)
  await db.destroy()
  process.stdout.write(`migrate: ${describeMigrated(migrated)}\n`)
} catch (error) {
  process.stderr.write(`migrate: ${explainCommandFailure(error)}\n`)
  process.exit(1)
}
