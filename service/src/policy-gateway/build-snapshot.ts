import type { Db } from '#platform/database.ts'
import { type CompiledPolicy, compilePolicy } from '#policies/compile.ts'
import type { RuleCheck } from '#policies/rule.ts'

import { type PolicyRef, type Published, readContents } from './snapshot-store.ts'
import { makeSnapshot, type Snapshot } from './snapshot.ts'

type Tools = { db: Db; checkRule: RuleCheck }

/**
 * Builds what is now in force; versions that are compiled already are kept as they are. An error of the
 * database is thrown and can be tried again; policies that cannot be put in force are returned as such.
 */
export async function buildSnapshot(
  { db, checkRule }: Tools,
  { organizationId, epoch, policies }: Published,
  known: Snapshot | undefined,
): Promise<Snapshot | Error> {
  const ready = new Map<string, CompiledPolicy>()
  for (const policy of known?.policies ?? []) ready.set(nameOf(policy), policy)
  const missing = policies.filter((each) => !ready.has(nameOf(each)))
  const sources = missing.length > 0 ? await readContents(db, organizationId, missing) : []
  try {
    for (const source of sources) ready.set(nameOf(source), await compilePolicy(source, checkRule))
    const compiled = policies.map((each) => ready.get(nameOf(each)) ?? missingVersion(each))
    return makeSnapshot(organizationId, epoch, compiled)
  } catch (error) {
    return error instanceof Error ? error : new Error('compiling failed', { cause: error })
  }
}

const nameOf = ({ policyId, version, sha256 }: PolicyRef) => `${policyId}/${version}/${sha256}`

function missingVersion({ policyId, version }: PolicyRef): never {
  throw new Error(`version ${version} of policy ${policyId} is not there with its published hash`)
}
