import {
  compileGateway,
  type GatewayInForce,
  isSameGateway,
} from '#gateway-config/compile-gateway.ts'
import { openGuardrail } from '#gateway-config/guardrails/open-guardrails.ts'
import type { SecretBox } from '#platform/secrets.ts'
import type { BackgroundWork } from '#platform/steps/background-work.ts'
import type { CompiledPolicy } from '#policies/compile.ts'
import type { PatternEngine } from '#text/pattern-engine.ts'

import { type CompiledVersions, compileVersions, versionKeyOf } from './compiled-versions.ts'
import { prepareRuleSets } from './rule-sets.ts'
import type { PolicyRef, Published, VersionContent } from './snapshot-store.ts'
import { makeSnapshot, type Snapshot } from './snapshot.ts'

type Deps = {
  engine: PatternEngine
  work: BackgroundWork
  secretBox: SecretBox
  readContents(organizationId: string, wanted: readonly PolicyRef[]): Promise<VersionContent[]>
}

/** How many versions are in memory as text at a time. */
const versionsPerRead = 50

/**
 * Builds the snapshot of what is published, with the rule sets that most calls need. Versions in `compiled` are not
 * compiled again, and those that are compiled are added to it; `known` is the configuration in force. A database error is thrown and worth a retry; a version
 * that is not there as it was published is returned as an Error. A rule that cannot be evaluated fails alone.
 */
export async function buildSnapshot(
  { engine, work, secretBox, readContents }: Deps,
  { organizationId, epoch, policies, gateway, guardrails }: Published,
  compiled: CompiledVersions,
  known: GatewayInForce | null,
): Promise<Snapshot | Error> {
  const missing = policies.filter((each) => !compiled.has(versionKeyOf(each)))
  for (let first = 0; first < missing.length; first += versionsPerRead) {
    const some = missing.slice(first, first + versionsPerRead)
    const contents = await readContents(organizationId, some)
    const sources = contents.map((each) => ({ ...each, name: '' })) // given below
    const problem = await work.run(compileVersions(sources, compiled, engine)).catch(toError)
    if (problem) return problem
  }
  try {
    const inForce = policies.map((each) =>
      withName(compiled.get(versionKeyOf(each)) ?? throwMissingVersion(each), each.name),
    )
    const isKnown = isSameGateway(known, gateway)
    const configured = isKnown ? known : gateway && (await work.run(compileGateway(gateway)))
    const snapshot = makeSnapshot(organizationId, epoch, inForce, {
      gateway: configured,
      guardrails: guardrails.map((each) => openGuardrail(each, organizationId, secretBox)),
    })
    await prepareRuleSets(snapshot, engine, work)
    return snapshot
  } catch (error) {
    return toError(error)
  }
}

const toError = (thrown: unknown) =>
  thrown instanceof Error ? thrown : new Error('compiling failed', { cause: thrown })

const withName = (policy: CompiledPolicy, name: string): CompiledPolicy =>
  policy.name === name ? policy : Object.freeze({ ...policy, name })

function throwMissingVersion({ policyId, version }: PolicyRef): never {
  throw new Error(`version ${version} of policy ${policyId} is not there with its published hash`)
}
