import { readFile, stat } from 'node:fs/promises'

import { UsageError } from '../usage-error.ts'
import { Fault } from './fault.ts'
import { type Keys, readKeys } from './keys.ts'
import { readLines } from './lines.ts'
import { describeProof } from './proof/describe-proof.ts'
import { findProof } from './proof/find-proof.ts'
import { verifyProof } from './proof/verify-proof.ts'
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

/** Verifies a bundle, a folder or a proof without any network: 0 if all is well, 1 with the first bad record. */
export async function verifyCommand(given: Given): Promise<Outcome> {
  try {
    const { text, json } = await verify(given)
    return { exitCode: 0, stdout: given.json ? `${JSON.stringify(json)}\n` : text, stderr: '' }
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
}: Given): Promise<{ text: string; json: object }> {
  const status = await readable(path, stat(path))
  const trusted = keysFile === undefined ? null : await trustedKeys(keysFile)
  if (status.isDirectory()) {
    if (!trusted || keysFile === undefined)
      throw new UsageError(keysNeeded('The files of a sink contain'))
    const result = await verifyFolder(path, { keys: trusted, keysFile, organizationId })
    return described({ ...result, keys: trusted, areKeysTrusted: true })
  }
  const proof = await readable(path, findProof(path, status.size))
  if (proof) {
    if (!trusted) throw new UsageError(keysNeeded('A proof contains'))
    return describeProof(verifyProof(proof, { file: path, keys: trusted, organizationId }))
  }
  return described(await verifyFile(path, trusted, organizationId))
}

const described = (verified: Verified) => ({ text: textOf(verified), json: jsonOf(verified) })

async function verifyFile(
  path: string,
  trusted: Keys | null,
  organizationId: string | undefined,
): Promise<Verified> {
  const result = await verifyBundle(readLines(path), { file: path, trusted, organizationId })
  return { ...result, areKeysTrusted: trusted !== null, before: null, duplicates: 0, digests: 0 }
}

const keysNeeded = (
  what: string,
) => `--keys is missing. ${what} no keys: save them once, and keep them apart from the records:
  curl -s https://gatehouse.example.com/.well-known/gatehouse-audit-keys.json > keys.json`

const trustedKeys = async (path: string): Promise<Keys> =>
  readKeys(await readable(path, readFile(path, 'utf8')))

async function readable<Result>(path: string, reading: Promise<Result>): Promise<Result> {
  try {
    return await reading
  } catch (error) {
    if (error instanceof Fault) throw error
    const reason = error instanceof Error ? error.message : String(error)
    throw new UsageError(`${path} cannot be read: ${reason}`, { cause: error })
  }
}
