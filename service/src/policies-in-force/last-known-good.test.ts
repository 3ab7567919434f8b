import type { PolicyContent } from '@gatehouse/contract/policy'
import { GivenGatewayConfig } from '@gatehouse/contract/policy-gateway/config'
import { expect, test } from 'vitest'

import { compileGateway } from '#gateway-config/compile-gateway.ts'
import { openGuardrail } from '#gateway-config/guardrails/open-guardrails.ts'
import { sealGuardrailSecret } from '#gateway-config/guardrails/saved-guardrail.ts'
import { createSecretBox } from '#platform/secrets.ts'
import { type BackgroundWork, startBackgroundWork } from '#platform/steps/background-work.ts'
import { finish } from '#platform/steps/steps.ts'
import type { TrustedFiles } from '#platform/trusted-file.ts'
import { compilePolicy } from '#policies/compile.ts'
import { hashContent } from '#policies/policy.ts'
import { loadPatternEngine } from '#text/pattern-engine.ts'

import type { CompiledVersions } from './compiled-versions.ts'
import { createInForce } from './in-force.ts'
import { keepLastKnownGood, restoreSnapshot } from './last-known-good.ts'
import { restoreCopy } from './restore-copy.ts'
import { ruleSetsOf } from './rule-sets.ts'
import { makeSnapshot } from './snapshot.ts'

const engine = loadPatternEngine()
const secretBox = createSecretBox([{ version: 1, bytes: Buffer.alloc(32, 1) }])

const content: PolicyContent = {
  rule: 'cel: text.contains("unkind")',
  direction: 'both',
  mode: 'enforcing',
  scope: 'organization',
  project_ids: [],
  match_threshold_basis_points: null,
}

/** One file in memory. */
function createFiles(text?: string) {
  const files = {
    text,
    keep: async (_: string, kept: string) => {
      files.text = kept
    },
    read: async () => (files.text === undefined ? undefined : { text: files.text, keptAtMs: 1 }),
  }
  return files as typeof files & TrustedFiles
}

const sourceOf = (changes: Partial<PolicyContent> = {}) => {
  const changed = { ...content, ...changes }
  const sha256 = hashContent(changed).toString('hex')
  return { policyId: 'pol_1', version: 2, sha256, ...changed }
}

/** Restores the copy as a process that starts. */
async function restore(files: TrustedFiles) {
  const inForce = createInForce({ now: () => new Date(2) })
  const { signal } = new AbortController()
  const others = await restoreCopy({ files, engine, secretBox, inForce, signal })
  return { inForce, others, failing: [...inForce.failures.keys()], snapshots: inForce.all() }
}

test('what is kept is read again, with names and rules that cannot be evaluated', async () => {
  const compiled = [{}, { rule: 'cel: mood("bad") > 0' }].map((changes) =>
    finish(compilePolicy({ name: 'Kindness', ...sourceOf(changes) }, engine)),
  )
  const files = createFiles()
  const snapshots = [makeSnapshot('org_1', 7, compiled)]
  await keepLastKnownGood(files, { snapshots, failing: ['org_2'], others: 3 })
  const copy = await restore(files)
  expect(copy).toMatchObject({ failing: ['org_2'], others: 3 })
  expect(copy.inForce.confirmedAtMs()).toBe(1)
  expect(copy.snapshots[0]).toMatchObject({ organizationId: 'org_1', epoch: 7 })
  expect(copy.snapshots[0]?.policies).toMatchObject([
    { name: 'Kindness', version: 2, content, rule: { form: 'expression' } },
    {
      name: 'Kindness',
      rule: { problem: expect.stringContaining("no function 'mood'") as string },
    },
  ])
})

const gateway = {
  revision: 3,
  sha256: 'ab',
  samplingRevision: 2,
  samplingKey: '07'.repeat(32),
  config: GivenGatewayConfig.parse({ rules: { denylist: ['bomb'] } }),
  rolledBackUntil: new Date('2026-05-04T10:00:00.123Z'),
}

test('the configuration of the policy gateway is kept and read again, also without policies', async () => {
  const files = createFiles()
  const inForce = finish(compileGateway(gateway))
  const snapshots = [
    makeSnapshot('org_1', 7, [], { gateway: inForce }),
    makeSnapshot('org_2', 1, []),
  ]
  await keepLastKnownGood(files, { snapshots, failing: [], others: 0 })
  const copy = await restore(files)
  const restored = copy.inForce.get('org_1')?.gateway
  expect(restored).toEqual({ ...gateway, terms: expect.anything() as object })
  expect(restored && finish(restored.terms.find(['BOMB'])).denylist).toEqual(['bomb'])
  expect(copy.inForce.get('org_2')?.gateway).toBeNull()
})

test('a configuration that is not understood fails its organization', async () => {
  // As releases wrote it that knew no rollbacks.
  const { rolledBackUntil: _, ...older } = gateway
  const organization = (organizationId: string, config: object) => ({
    organizationId,
    epoch: 1,
    gateway: { ...older, config },
    policies: [],
  })
  const organizations = [organization('org_1', { newer: true }), organization('org_2', {})]
  const text = JSON.stringify({ schema: 1, others: 0, failing: [], organizations })
  const copy = await restore(createFiles(text))
  expect(copy.failing).toEqual(['org_1'])
  expect(copy.snapshots.map(({ organizationId }) => organizationId)).toEqual(['org_2'])
})

/** As releases wrote it that did not know names. */
const oldFile = (policy: object) =>
  JSON.stringify({
    schema: 1,
    others: 0,
    failing: [],
    organizations: [{ organizationId: 'org_1', epoch: 7, policies: [policy] }],
  })

const stored = {
  id: 'grd_1',
  name: 'Guard',
  url: 'https://guard.example.com',
  mode: 'enforcing',
  onError: 'refuse',
  deadlineMs: 2000,
  projectIds: ['proj_1'],
} as const

test('guardrails are kept as they are sealed, and opened again', async () => {
  const identity = { id: 'grd_1', organizationId: 'org_1' }
  const secret = 'whsec_canary'
  const sealedSecret = sealGuardrailSecret(identity, secret, secretBox).toString('hex')
  const opened = openGuardrail({ ...stored, sealedSecret }, 'org_1', secretBox)
  expect(opened.asked?.secret).toBe(secret)
  const files = createFiles()
  const snapshots = [makeSnapshot('org_1', 7, [], { guardrails: [opened] })]
  await keepLastKnownGood(files, { snapshots, failing: [], others: 0 })
  expect(files.text).not.toContain('canary')
  const copy = await restore(files)
  expect(copy.inForce.get('org_1')?.guardrails).toEqual([opened])
})

test('a guardrail whose secret no key opens, or of another organization, is restored as one that cannot be asked', async () => {
  const identity = { id: 'grd_1', organizationId: 'org_2' }
  const sealedSecret = sealGuardrailSecret(identity, 'whsec_a', secretBox).toString('hex')
  for (const spoiled of [sealedSecret, '', 'ab']) {
    const kept = openGuardrail({ ...stored, sealedSecret: spoiled }, 'org_1', secretBox)
    const files = createFiles()
    const snapshots = [makeSnapshot('org_1', 7, [], { guardrails: [kept] })]
    await keepLastKnownGood(files, { snapshots, failing: [], others: 0 })
    const { inForce } = await restore(files)
    expect(inForce.get('org_1')?.guardrails).toMatchObject([{ id: 'grd_1', asked: null }])
    expect(inForce.unenforceable()).toBe(1)
  }
})

test('a file of an earlier release is read; the name is the id until a poll brings it', async () => {
  const copy = await restore(createFiles(oldFile(sourceOf())))
  expect(copy.snapshots[0]?.policies).toMatchObject([{ policyId: 'pol_1', name: 'pol_1', content }])
})

test('content without its hash fails its organization', async () => {
  const spoiled = { ...sourceOf(), mode: 'monitoring' }
  const copy = await restore(createFiles(oldFile(spoiled)))
  expect([copy.snapshots, copy.failing]).toEqual([[], ['org_1']])
})

test('an organization is not restored without one of its policies', async () => {
  const compiled: CompiledVersions = new Map()
  const background = startBackgroundWork()
  const work: BackgroundWork = {
    ...background,
    async run(steps) {
      const result = await background.run(steps)
      compiled.clear() // as another owner of the same map would
      return result
    },
  }
  const kept = { organizationId: 'org_1', epoch: 7, policies: [sourceOf()] }
  const restoring = restoreSnapshot(kept, { engine, compiled, work, secretBox })
  await expect(restoring).rejects.toThrow('version 2 of pol_1 was not compiled')
})

test('the sets of what is restored are ready before the first call', async () => {
  const { snapshots } = await restore(createFiles(oldFile(sourceOf())))
  const sets = ruleSetsOf(snapshots[0]!, engine)
  for (const direction of ['request', 'response'] as const) {
    expect(sets.for(null, direction)).toMatchObject({ unenforceable: [] })
  }
})

test('without a copy nothing is restored', async () => {
  const { inForce, others } = await restore(createFiles())
  expect([others, inForce.confirmedAtMs()]).toEqual([undefined, -Infinity])
})
