import type { Steps } from '#platform/steps/steps.ts'
import { type CompiledPolicy, compilePolicy, type PolicySource } from '#policies/compile.ts'
import type { PatternEngine } from '#text/pattern-engine.ts'

type VersionRef = { policyId: string; version: number; sha256: string }

/** Compiled versions of the policies of one organization. */
export type CompiledVersions = Map<string, CompiledPolicy>

export const versionKeyOf = ({ policyId, version, sha256 }: VersionRef) =>
  `${policyId}/${version}/${sha256}`

/** Compiles what is not there yet. What was compiled stays, also if the work ends before all is. */
export function* compileVersions(
  sources: readonly PolicySource[],
  compiled: CompiledVersions,
  engine: PatternEngine,
): Steps<void> {
  for (const source of sources) {
    const key = versionKeyOf(source)
    if (!compiled.has(key)) compiled.set(key, yield* compilePolicy(source, engine))
    yield
  }
}

/**
 * What was compiled in organizations whose policies are not in force yet: the next try goes on from there.
 * An organization's entry is dropped when its snapshot is in force, which then has the compiled versions.
 */
export function createUnfinished() {
  const byOrganization = new Map<string, CompiledVersions>()
  return {
    of(organizationId: string): CompiledVersions {
      const known = byOrganization.get(organizationId)
      if (known) return known
      const made: CompiledVersions = new Map()
      byOrganization.set(organizationId, made)
      return made
    },
    drop: (organizationId: string) => byOrganization.delete(organizationId),
  }
}
export type Unfinished = ReturnType<typeof createUnfinished>
