import { z } from 'zod'

import {
  compileGateway,
  type GatewayInForce,
  type StoredGateway,
  storedOf,
} from '#gateway-config/compile-gateway.ts'
import { openGuardrail, storedGuardrailOf } from '#gateway-config/guardrails/open-guardrails.ts'
import type { SecretBox } from '#platform/secrets.ts'
import type { BackgroundWork } from '#platform/steps/background-work.ts'
import type { TrustedFiles } from '#platform/trusted-file.ts'
import type { PatternEngine } from '#text/pattern-engine.ts'

import { type CompiledVersions, compileVersions, versionKeyOf } from './compiled-versions.ts'
import { prepareRuleSets } from './rule-sets.ts'
import { makeSnapshot, type Snapshot } from './snapshot.ts'

/** What a process needs to start while the database is unreachable. */
type LastKnownGood = {
  snapshots: readonly Snapshot[]
  /** Organizations whose newest policies could not be put in force. */
  failing: readonly string[]
  /** How many other processes were live when it was written. */
  others: number
}

const fileName = 'policies'

const PolicyFile = z.object({
  schema: z.literal(1),
  others: z.int(),
  failing: z.array(z.string()),
  organizations: z.array(
    z.object({
      organizationId: z.string(),
      epoch: z.int(),
      // Earlier releases do not write it, and pass over it.
      gateway: z
        .object({
          revision: z.int(),
          sha256: z.string(),
          samplingRevision: z.int(),
          samplingKey: z.string(),
          config: z.unknown(),
          rolledBackUntil: z.iso.datetime().nullish(),
        })
        .nullish(),
      // Earlier releases do not write it, and pass over it. Secrets are as sealed as in the database.
      guardrails: z
        .array(
          z.object({
            id: z.string(),
            name: z.string(),
            url: z.string(),
            mode: z.enum(['monitoring', 'enforcing']),
            onError: z.enum(['refuse', 'allow']),
            deadlineMs: z.int(),
            projectIds: z.array(z.string()).readonly().nullable(),
            sealedSecret: z.string(),
          }),
        )
        .readonly()
        .nullish(),
      policies: z.array(
        z.object({
          policyId: z.string(),
          name: z.string().optional(), // earlier releases do not write it, and pass over it
          version: z.int(),
          sha256: z.string(),
          rule: z.string(),
          direction: z.enum(['request', 'response', 'both']),
          mode: z.enum(['monitoring', 'enforcing']),
          scope: z.enum(['organization', 'projects', 'unattached']),
          project_ids: z.array(z.string()),
          match_threshold_basis_points: z.int().nullable(),
          patternCosts: z.array(z.int()).readonly().nullish(), // earlier releases do not write it, and pass over it
        }),
      ),
    }),
  ),
})

type KeptOrganization = z.infer<typeof PolicyFile>['organizations'][number]
type KeptGateway = NonNullable<KeptOrganization['gateway']>
type KeptPolicies = Omit<z.infer<typeof PolicyFile>, 'schema'> & { keptAtMs: number }
type RestoreDeps = {
  engine: PatternEngine
  compiled: CompiledVersions
  work: BackgroundWork
  secretBox: SecretBox
}

export async function keepLastKnownGood(
  files: TrustedFiles,
  { snapshots, failing, others }: LastKnownGood,
) {
  const content: z.infer<typeof PolicyFile> = {
    schema: 1,
    others,
    failing: [...failing],
    organizations: snapshots.map(({ organizationId, epoch, gateway, guardrails, policies }) => ({
      organizationId,
      epoch,
      gateway: gateway && toKept(gateway),
      guardrails: guardrails.map(storedGuardrailOf),
      policies: policies.map(({ content, rule: _, ...policy }) => ({ ...policy, ...content })),
    })),
  }
  await files.keep(fileName, JSON.stringify(content))
}

/** The copy on disk, however old; undefined when there is none, or none that we have written. */
export async function readLastKnownGood(files: TrustedFiles): Promise<KeptPolicies | undefined> {
  const file = await files.read(fileName, Infinity)
  if (!file) return undefined
  const { failing, organizations, others } = PolicyFile.parse(JSON.parse(file.text))
  return { failing, organizations, others, keptAtMs: file.keptAtMs }
}

/**
 * Compiles the copy of an organization's policies into `compiled`, which no other code changes; throws if it is not what
 * was published.
 */
export async function restoreSnapshot(
  { organizationId, epoch, gateway, guardrails, policies }: KeptOrganization,
  { engine, compiled, work, secretBox }: RestoreDeps,
): Promise<Snapshot> {
  const sources = policies.map((each) => ({ ...each, name: each.name ?? each.policyId }))
  await work.run(compileVersions(sources, compiled, engine))
  const restored = sources.map((each) => {
    const policy = compiled.get(versionKeyOf(each))
    // Without one of its policies an organization would be protected less than it believes.
    if (!policy) throw new Error(`version ${each.version} of ${each.policyId} was not compiled`)
    return policy
  })
  const configured = gateway ? await work.run(compileGateway(toStored(gateway))) : null
  const snapshot = makeSnapshot(organizationId, epoch, restored, {
    gateway: configured,
    guardrails: (guardrails ?? []).map((each) => openGuardrail(each, organizationId, secretBox)),
  })
  await prepareRuleSets(snapshot, engine, work)
  return snapshot
}

const toKept = (gateway: GatewayInForce): KeptGateway => {
  const { rolledBackUntil, ...stored } = storedOf(gateway)
  return { ...stored, rolledBackUntil: rolledBackUntil?.toISOString() }
}

const toStored = ({ rolledBackUntil, ...gateway }: KeptGateway): StoredGateway => ({
  ...gateway,
  rolledBackUntil: rolledBackUntil ? new Date(rolledBackUntil) : null,
})
