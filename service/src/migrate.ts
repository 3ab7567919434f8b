import { connectDatabase } from '#platform/database.ts'
import { migrate } from '#platform/migrations.ts'

import { loadMigrationConfig } from './config.ts'
import { explainFailure, requireSettings } from './operator/explain-failure.ts'

// Applies the migrations and exits. Any number of processes may run it at any time.
try {
  // eslint-disable-next-line node/no-process-env
  const environment = process.env
  requireSettings(['DATABASE_URL'], environment)
  const { DATABASE_URL } = loadMigrationConfig(environment)
  const db = connectDatabase({ url: DATABASE_URL, poolSize: 2, statementTimeoutMs: 0 })
  const applied = await migrate(db)
  await db.destroy()
  const outcome = applied.length === 0 ? 'nothing to do' : `applied ${applied.join(', ')}`
  process.stdout.write(`migrate: ${outcome}\n`)
} catch (error) {
  process.stderr.write(`migrate: ${explainFailure(error)}\n`)
  process.exit(1)
}
