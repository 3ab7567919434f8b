import { connectDatabase } from '#platform/database.ts'
import { migrate } from '#platform/migrations.ts'

import { loadMigrationConfig } from './config.ts'

// Applies the migrations and exits. Safe to run at any time, by any number of processes.
try {
  // eslint-disable-next-line node/no-process-env
  const { DATABASE_URL } = loadMigrationConfig(process.env)
  const db = connectDatabase({ url: DATABASE_URL, poolSize: 2, statementTimeoutMs: 0 })
  const applied = await migrate(db)
  await db.destroy()
  const what = applied.length === 0 ? 'nothing to do' : `applied ${applied.join(', ')}`
  process.stdout.write(`migrate: ${what}\n`)
} catch (error) {
  process.stderr.write(`migrate: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(1)
}
