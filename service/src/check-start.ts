import { readdir } from 'node:fs/promises'

import { eventsPrefix } from '#audit/event-writer.ts'
import { settlementPrefixes } from '#credits/backlog/settlement-backlog.ts'
import { recognizeDatabase } from '#installation/installation.ts'
import { connectDatabase } from '#platform/database.ts'
import { findMismatch, readSchemaState } from '#platform/migrations.ts'
import { createDirectoryCheck } from '#platform/state-directory/check-directory.ts'
import type { StartedDirectory } from '#platform/state-directory/watch-directory.ts'

import type { Config } from './config.ts'

/**
 * Throws if this process could never serve, before it builds anything: it must not deliver charges from the state directory of
 * another database. An unreachable database does not stop the start; readiness checks it once it is back. Returns what was
 * found out.
 */
export async function checkStart(config: Config): Promise<StartedDirectory> {
  const { STATE_DIRECTORY } = config
  const directoryCheck =
    STATE_DIRECTORY === undefined ? undefined : createDirectoryCheck(STATE_DIRECTORY)
  const look = async (databaseId?: string) => {
    const state = await directoryCheck?.look({ databaseId, mayCreate: true })
    if (!isFull(state?.code) || !(await hasWaitingFiles(STATE_DIRECTORY))) refuse(state?.fault)
  }
  await look()
  const { fault, databaseId } = await checkDatabase(config)
  refuse(fault)
  if (databaseId !== undefined) await look(databaseId)
  return { databaseId, directoryCheck }
}

/** The process may free space by itself, by delivering what fills the disk. It is not ready until then. */
const isFull = (code: string | undefined) => code === 'ENOSPC' || code === 'EDQUOT'

async function hasWaitingFiles(directory = '') {
  const prefixes = [eventsPrefix, ...settlementPrefixes]
  return (await readdir(directory)).some((name) => prefixes.some((each) => name.startsWith(each)))
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
