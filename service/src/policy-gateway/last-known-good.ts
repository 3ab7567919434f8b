import { z } from 'zod'

import type { TrustedFiles } from '#platform/trusted-file.ts'
import { compilePolicy } from '#policies/compile.ts'
import type { RuleCheck } from '#policies/rule.ts'

import { makeSnapshot, type Snapshot } from './snapshot.ts'

/** What a process needs to start while the database is unreachable. */
export type LastKnownGood = {
  snapshots: readonly Snapshot[]
  /** Organizations whose newest policies could not be put in force. */
  failing: readonly string[]
  /** How many other processes were live when it was written. */
  others: number
  keptAtMs: number
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
      policies: z.array(
        z.object({
          policyId: z.string(),
          version: z.int(),
          sha256: z.string(),
          rule: z.string(),
          direction: z.enum(['request', 'response', 'both']),
          mode: z.enum(['monitoring', 'enforcing']),
          scope: z.enum(['organization', 'projects', 'unattached']),
          project_ids: z.array(z.string()),
          match_threshold_basis_points: z.int().nullable(),
        }),
      ),
    }),
  ),
})

export async function keepLastKnownGood(
  files: TrustedFiles,
  { snapshots, failing, others }: Omit<LastKnownGood, 'keptAtMs'>,
) {
  const content: z.infer<typeof PolicyFile> = {
    schema: 1,
    others,
    failing: [...failing],
    organizations: snapshots.map(({ organizationId, epoch, policies }) => ({
      organizationId,
      epoch,
      policies: policies.map(({ content, ...policy }) => ({ ...policy, ...content })),
    })),
  }
  await files.keep(fileName, JSON.stringify(content))
}

/** The copy on disk, however old; undefined when there is none, or none that we have written. */
export async function readLastKnownGood(
  files: TrustedFiles,
  checkRule: RuleCheck,
): Promise<LastKnownGood | undefined> {
  const file = await files.read(fileName, Infinity)
  if (!file) return undefined
  const content = PolicyFile.parse(JSON.parse(file.text))
  const snapshots: Snapshot[] = []
  const failing = [...content.failing]
  for (const { organizationId, epoch, policies } of content.organizations) {
    try {
      const compiled = await Promise.all(policies.map((each) => compilePolicy(each, checkRule)))
      snapshots.push(makeSnapshot(organizationId, epoch, compiled))
    } catch {
      failing.push(organizationId) // the other organizations are restored all the same
    }
  }
  return { snapshots, failing, others: content.others, keptAtMs: file.keptAtMs }
}
