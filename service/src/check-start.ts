import { recognizeDatabase } from '#installation/installation.ts'
import { connectDatabase } from '#platform/database.ts'
import { findMismatch, readSchemaState } from '#platform/migrations.ts'
import { createDirectoryCheck } from '#platform/state-directory/check-directory.ts'

import type { Config } from './config.ts'

/**
 * Throws where this process could never serve, before it builds anything: it must not deliver charges from the directory of
 * another database. A database that is away is no reason not to start: readiness looks at it when it is back. Returns the id
 * of a database that is there.
 */
export async function checkStart(config: Config): Promise<{ databaseId: string | undefined }> {
  const { STATE_DIRECTORY } = config
  const findFault =
    STATE_DIRECTORY === undefined ? undefined : createDirectoryCheck(STATE_DIRECTORY)
  refuse(await findFault?.({ databaseId: undefined, mayCreate: true }))
  const { fault, databaseId } = await checkDatabase(config)
  refuse(fault)
  if (databaseId !== undefined) refuse(await findFault?.({ databaseId, mayCreate: true }))
  return { databaseId }
}

type CheckedDatabase = { fault?: string | null | undefined; databaseId?: string | undefined }

async function checkDatabase(config: Config): Promise<CheckedDatabase> {
  const db = connectDatabase({ url: config.DATABASE_URL, poolSize: 1 })
  try {
    const state = await readSchemaState(db)
    const mismatch = findMismatch(state)
    if (mismatch !== null || state.missing.length > 0) return { fault: mismatch }
    return (await recognizeDatabase(db, config.MASTER_KEYS)) ?? {}
  } catch {
    return {}
  } finally {
    await db.destroy()
  }
}

function refuse(fault: string | null | undefined) {
  if (fault) throw new Error(fault)
}
