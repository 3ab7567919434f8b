import type { Db } from '#platform/database.ts'
import { type CompiledPolicy, compilePolicy } from '#policies/compile.ts'
import type { RuleCheck } from '#policies/rule.ts'

import { type PolicyRef, type Published, readContents } from './snapshot-store.ts'
import { makeSnapshot, type Snapshot } from './snapshot.ts'

type Deps = { db: Db; checkRule: RuleCheck }

/**
 * Builds the snapshot of what is published, reusing the compiled versions of the `known` one. A database
 * error is thrown and worth a retry; a policy that cannot be compiled is returned as an Error.
 */
export async function buildSnapshot(
  { db, checkRule }: Deps,
  { organizationId, epoch, policies }: Published,
  known: Snapshot | undefined,
): Promise<Snapshot | Error> {
  const compiled = new Map<string, CompiledPolicy>()
  for (const policy of known?.policies ?? []) compiled.set(versionKeyOf(policy), policy)
  const missing = policies.filter((each) => !compiled.has(versionKeyOf(each)))
  const sources = missing.length > 0 ? await readContents(db, organizationId, missing) : []
  try {
    for (const source of sources) {
      compiled.set(versionKeyOf(source), await compilePolicy(source, checkRule))
    }
    const inForce = policies.map(
      (each) => compiled.get(versionKeyOf(each)) ?? throwMissingVersion(each),
    )
    return makeSnapshot(organizationId, epoch, inForce)
  } catch (error) {
    return error instanceof Error ? error : new Error('compiling failed', { cause: error })
  }
}

const versionKeyOf = ({ policyId, version, sha256 }: PolicyRef) =>
  `${policyId}/${version}/${sha256}`

function throwMissingVersion({ policyId, version }: PolicyRef): never {
  throw new Error(`version ${version} of policy ${policyId} is not there with its published hash`)
}
