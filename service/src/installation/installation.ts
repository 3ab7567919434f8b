import type { Db, Tx } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'
import { createSecretBox, type Keyring, type MasterKey, type SecretBox } from '#platform/secrets.ts'
import { transact } from '#platform/transaction.ts'

import {
  hasApiKeys,
  type InstallationRow,
  lockInstallation,
  readInstallation,
  replaceKeyCheck,
} from './installation-store.ts'
import { listSealedSamples } from './sealed-samples.ts'

// Which database this is, and whether MASTER_KEYS belongs to it. The database has a value that is sealed with the master key;
// a process that cannot open it has another key, and would answer every caller that the key does not exist.
//
//   the value        what a process does at its start
//   is there         opens it, or refuses to start
//   is missing       seals it, if its key has been proved right: it opens something else that is sealed in the database, or there
//                    is nothing that depends on a key. Otherwise the first API key that is verified proves it.

const wrongKeys =
  'MASTER_KEYS does not belong to this database: none of its keys opens what the database was sealed with. ' +
  'Set the MASTER_KEYS that the other processes use, or correct DATABASE_URL. ' +
  'If a key was removed after a rotation, add it again at the end and run "gatehouse operator secrets rewrap" before you remove it.'

/** For those who would make keys or seal secrets, which would be useless to everybody else if the key is wrong. */
export const unprovedKeys =
  'MASTER_KEYS may not belong to this database: it has API keys or sealed secrets, and nothing shows yet that they were made with these keys. ' +
  'Start a process with these MASTER_KEYS and make one call with an API key that worked before, then repeat the command. ' +
  'If the earlier master key is lost for good, run "gatehouse operator secrets adopt" first.'

const contextOf = ({ id }: InstallationRow) => `installation/key_check/${id}`
const contents = Buffer.from('gatehouse')

/** `fault` says what to do; null where the keys are right, as far as that can be known yet. */
export type RecognizedDatabase = {
  databaseId: string
  fault: string | null
  /** False where nothing shows yet whether the keys are right. */
  isProved: boolean
}

/** Undefined where the database has no such table yet. */
export async function recognizeDatabase(
  db: Db,
  keyring: Keyring,
): Promise<RecognizedDatabase | undefined> {
  const found = await readInstallation(db)
  if (!found) return undefined
  if (found.keyCheck !== null) return judge(found, keyring)
  // Of processes that start at the same time with different keys, the first one decides and the others are refused.
  return transact(db, async (tx) => {
    const row = (await lockInstallation(tx)) ?? found
    if (row.keyCheck !== null) return judge(row, keyring)
    const proved = await findProvedKey(tx, keyring)
    if (proved) await replaceKeyCheck(tx, { before: null, after: sealCheck(row, proved) })
    return { databaseId: row.id, fault: null, isProved: proved !== undefined }
  })
}

function judge(row: InstallationRow, keyring: Keyring): RecognizedDatabase {
  const isProved =
    row.keyCheck !== null && opens(createSecretBox(keyring), row.keyCheck, contextOf(row))
  return { databaseId: row.id, fault: isProved ? null : wrongKeys, isProved }
}

/** By the key that was proved alone: processes that do not have the newest one yet are right as well. */
const sealCheck = (row: InstallationRow, proved: MasterKey) =>
  createSecretBox([proved]).seal(contents, contextOf(row))

function opens(box: SecretBox, sealed: Buffer, context: string): boolean {
  try {
    box.open(sealed, context)
    return true
  } catch {
    return false
  }
}

async function findProvedKey(tx: Tx, keyring: Keyring): Promise<MasterKey | undefined> {
  const samples = await listSealedSamples(tx)
  if (samples.length === 0 && !(await hasApiKeys(tx))) return keyring[0]
  return keyring.find((master) => {
    const box = createSecretBox([master])
    return samples.some(({ sealed, context }) => opens(box, sealed, context))
  })
}

/** Seals the value with the current master key where it is missing, without a proof. False if there is one. */
export async function adoptKey(db: Db, secretBox: SecretBox): Promise<boolean> {
  return transact(db, async (tx) => {
    const row = await lockInstallation(tx)
    if (!row || row.keyCheck !== null) return false
    const after = secretBox.seal(contents, contextOf(row))
    return replaceKeyCheck(tx, { before: null, after })
  })
}

/** Seals the value with the current master key. Repeating it changes nothing. */
export async function rewrapKeyCheck(db: Db, secretBox: SecretBox) {
  await transact(db, async (tx) => {
    const row = await lockInstallation(tx)
    if (!row?.keyCheck || secretBox.isCurrent(row.keyCheck)) return
    const opened = secretBox.open(row.keyCheck, contextOf(row))
    const after = secretBox.seal(opened, contextOf(row))
    await replaceKeyCheck(tx, { before: row.keyCheck, after })
  })
}

type Deps = { db: Db; keyring: Keyring; log: Log }

/** The database of a process that runs. */
export function createInstallation({ db, keyring, log }: Deps) {
  let isRecorded = false

  async function record(master: MasterKey) {
    const row = await readInstallation(db)
    if (!row || row.keyCheck !== null) return
    const after = sealCheck(row, master)
    await transact(db, (tx) => replaceKeyCheck(tx, { before: null, after }))
  }
  const recognize = () => recognizeDatabase(db, keyring)
  return {
    recognize,
    /** The id of the database; undefined if the master keys are another one's. */
    async findId(): Promise<string | undefined> {
      const known = await recognize()
      return known?.fault === null ? known.databaseId : undefined
    },
    /** An API key was verified with the master key of this version. */
    noteProof(version: number) {
      const master = keyring.find((each) => each.version === version)
      if (isRecorded || !master) return
      isRecorded = true
      // Not awaited. After a failure the next key that is looked up proves it again.
      record(master).catch((error: unknown) => {
        isRecorded = false
        log.problem('master_key_check_not_written', error)
      })
    },
  }
}
