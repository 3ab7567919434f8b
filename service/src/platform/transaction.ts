import { sql } from 'kysely'

import {
  type Db,
  type LocalSettings,
  type NamedTx,
  runNamedTransaction,
  type Tx,
} from './database.ts'

const followUps = new WeakMap<Tx, (() => void)[]>()

/** Runs `task` once the transaction has committed; never when it rolls back. */
export function afterCommit(tx: Tx, task: () => void) {
  const tasks = followUps.get(tx)
  if (!tasks) throw new Error('afterCommit needs a transaction opened by transact')
  tasks.push(task)
}

const attemptsMax = 3
/** Serialization failure and deadlock: PostgreSQL has rolled the transaction back, so it can run again. */
const repeatable = new Set(['40001', '40P01'])

export async function transact<T>(db: Db, work: (tx: Tx) => Promise<T>): Promise<T> {
  return attemptAgain(async () => {
    const tasks: (() => void)[] = []
    const result = await db.transaction().execute((tx) => {
      followUps.set(tx, tasks)
      return work(tx)
    })
    for (const task of tasks) task()
    return result
  })
}

/** A transaction that runs named statements only, for work that is done many times in a minute. */
export async function transactNamed<T>(
  db: Db,
  settings: LocalSettings,
  work: (tx: NamedTx) => Promise<T>,
): Promise<T> {
  return attemptAgain(() => runNamedTransaction(db, settings, work))
}

async function attemptAgain<T>(transaction: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await transaction()
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : ''
      if (attempt >= attemptsMax || !repeatable.has(code)) throw error
    }
  }
}

/** Runs part of a transaction in a savepoint; if it fails, only that part is rolled back. */
export async function inSavepoint<T>(
  tx: Tx,
  work: () => Promise<T>,
  onFailure: (error: unknown) => T,
): Promise<T> {
  const tasks = followUps.get(tx)
  const tasksBefore = tasks?.length ?? 0
  await sql`savepoint part`.execute(tx)
  try {
    return await work()
  } catch (error) {
    const result = onFailure(error)
    await sql`rollback to savepoint part`.execute(tx)
    tasks?.splice(tasksBefore) // drops the follow-ups of what was rolled back
    return result
  }
}
