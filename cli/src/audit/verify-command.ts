import { readFile, stat } from 'node:fs/promises'

import { UsageError } from '../usage-error.ts'
import { Fault } from './fault.ts'
import { type Keys, readKeys } from './keys.ts'
import { readLines } from './lines.ts'
import { faultJson, faultText, jsonOf, textOf, type Verified } from './report.ts'
import { verifyBundle } from './verify-bundle.ts'
import { verifyFolder } from './verify-folder.ts'

export type Outcome = { exitCode: 0 | 1 | 2; stdout: string; stderr: string }

type Given = {
  path: string
  keys: string | undefined
  organization: string | undefined
  json: boolean
}

/** Verifies a bundle or a folder without any network: 0 if all is well, 1 with the first bad record. */
export async function verifyCommand(given: Given): Promise<Outcome> {
  try {
    const verified = await verify(given)
    const stdout = given.json ? `${JSON.stringify(jsonOf(verified))}\n` : textOf(verified)
    return { exitCode: 0, stdout, stderr: '' }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return given.json
      ? { exitCode: 1, stdout: `${JSON.stringify(faultJson(error))}\n`, stderr: '' }
      : { exitCode: 1, stdout: '', stderr: `error: ${faultText(error)}\n` }
  }
}

async function verify({
  path,
  keys: keysFile,
  organization: organizationId,
}: Given): Promise<Verified> {
  const isFolder = (await readable(path, stat(path))).isDirectory()
  const trusted = keysFile === undefined ? null : await trustedKeys(keysFile)
  if (isFolder) {
    if (!trusted || keysFile === undefined) throw new UsageError(keysNeeded)
    const result = await verifyFolder(path, { keys: trusted, keysFile, organizationId })
    return { ...result, keys: trusted, areKeysTrusted: true }
  }
  const result = await verifyBundle(readLines(path), { file: path, trusted, organizationId })
  return { ...result, areKeysTrusted: trusted !== null, before: null, duplicates: 0, digests: 0 }
}

const keysNeeded = `--keys is missing. The files of a sink contain no keys: save them once, and keep them apart from the records:
  curl -s https://gatehouse.example.com/.well-known/gatehouse-audit-keys.json > keys.json`

const trustedKeys = async (path: string): Promise<Keys> =>
  readKeys(await readable(path, readFile(path, 'utf8')))

async function readable<Result>(path: string, reading: Promise<Result>): Promise<Result> {
  try {
    return await reading
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new UsageError(`${path} cannot be read: ${reason}`, { cause: error })
  }
}
