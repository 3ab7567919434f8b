import type { PolicyContent } from '@gatehouse/contract/policy'
import { expect, test } from 'vitest'

import { createSecretBox } from '#platform/secrets.ts'
import { startBackgroundWork } from '#platform/steps/background-work.ts'
import { hashContent } from '#policies/policy.ts'
import { loadPatternEngine, type PatternEngine } from '#text/pattern-engine.ts'

import { buildSnapshot } from './build-snapshot.ts'
import { type CompiledVersions, compileVersions } from './compiled-versions.ts'
import { prepareRuleSets, ruleSetsOf } from './rule-sets.ts'
import type { Published, VersionContent } from './snapshot-store.ts'
import { findUnenforceable, makeSnapshot } from './snapshot.ts'

const engine = loadPatternEngine()

const content: PolicyContent = {
  rule: '',
  direction: 'both',
  mode: 'enforcing',
  scope: 'organization',
  project_ids: [],
  match_threshold_basis_points: null,
}

function versionOf(number: number, changes: Partial<PolicyContent>): VersionContent {
  const changed = { ...content, ...changes }
  const sha256 = hashContent(changed).toString('hex')
  return { policyId: `pol_${number}`, version: 1, sha256, patternCosts: null, ...changed }
}

/** Some are found by their literals, and some have to be tried on every text. */
const patternOf = (policy: number, index: number) =>
  index % 3 === 0
    ? String.raw`\b\d{${1 + (index % 5)}}[a-f]{2,${3 + policy}}\W${index}`
    : String.raw`(?i)\b(?:merger|takeover)\s{1,5}of${policy}x${index}\b`

const ruleOf = (policy: number, patterns: number) =>
  `cel: ${Array.from({ length: patterns }, (_, index) => `text.matches(r"${patternOf(policy, index)}")`).join(' || ')}`

const manyPatterns = Array.from({ length: 20 }, (_, policy) =>
  versionOf(policy, { rule: ruleOf(policy, 60) }),
)

/** As many policies as an organization has by default, each with as much text as an expression may have. */
const manyLiterals = Array.from({ length: 500 }, (_, policy) => {
  const literals = Array.from(
    { length: 4 },
    (_, index) => `"${`${policy} ${index} ${'lorem ipsum dolor '.repeat(60)}`.slice(0, 980)}"`,
  )
  return versionOf(policy, { rule: `cel: text.containsAny([${literals.join(', ')}])` })
})

const secretBox = createSecretBox([{ version: 1, bytes: Buffer.alloc(32, 1) }])
const organizations = { 'many patterns': manyPatterns, 'many literals': manyLiterals }

const publishedOf = (versions: readonly VersionContent[]): Published => ({
  organizationId: 'org_1',
  epoch: 1,
  policies: versions.map(({ policyId, version, sha256 }) => ({
    policyId,
    version,
    sha256,
    name: policyId,
  })),
  gateway: null,
  guardrails: [],
})

const build = (versions: readonly VersionContent[], compiled: CompiledVersions = new Map()) =>
  buildSnapshot(
    {
      engine,
      work: startBackgroundWork(),
      secretBox,
      readContents: async (_, wanted) =>
        versions.filter(({ policyId }) => wanted.some((each) => each.policyId === policyId)),
    },
    publishedOf(versions),
    compiled,
    null,
  )

/** The most processor time of this thread that passes between two turns of the event loop while the work runs. */
async function longestHoldMs(work: () => Promise<unknown>): Promise<number> {
  let longestMs = 0
  let isDone = false
  let before = process.threadCpuUsage()
  const look = () => {
    const { user, system } = process.threadCpuUsage(before)
    longestMs = Math.max(longestMs, (user + system) / 1000)
    before = process.threadCpuUsage()
    if (!isDone) setImmediate(look)
  }
  setImmediate(look)
  await work()
  isDone = true
  look()
  return longestMs
}

/** A garbage collection may fall into one round, but not into three. */
async function leastHoldMs(work: () => Promise<unknown>): Promise<number> {
  let leastMs = Infinity
  for (let round = 0; round < 3 && leastMs > 50; round++) {
    leastMs = Math.min(leastMs, await longestHoldMs(work))
  }
  return leastMs
}

test.each(Object.entries(organizations))(
  'putting %s in force never holds the event loop for 50 ms',
  async (_, versions) => {
    const heldMs = await leastHoldMs(async () => {
      const snapshot = await build(versions)
      if (snapshot instanceof Error) throw snapshot
      expect(findUnenforceable(snapshot)).toEqual([])
      expect(ruleSetsOf(snapshot, engine).for(null, 'response')).not.toBeInstanceOf(Promise)
    })
    expect(heldMs).toBeLessThan(50)
  },
)

/** Policies of one project, with one for all of them. */
async function compileNamed() {
  const scope = { scope: 'projects' as const, project_ids: ['proj_1'] }
  const versions = [
    versionOf(999, { rule: 'cel: text.contains("a")' }),
    ...[...manyPatterns, ...manyLiterals].map(({ rule }, number) =>
      versionOf(number, { rule, ...scope }),
    ),
  ]
  const compiled: CompiledVersions = new Map()
  const work = startBackgroundWork()
  const sources = versions.map((each) => ({ ...each, name: each.policyId }))
  await work.run(compileVersions(sources, compiled, engine))
  return compiled
}

test('nor does the first call of a project that policies name', async () => {
  const compiled = await compileNamed()
  const heldMs = await leastHoldMs(async () => {
    const snapshot = makeSnapshot('org_1', 1, [...compiled.values()])
    await prepareRuleSets(snapshot, engine, startBackgroundWork())
    const sets = ruleSetsOf(snapshot, engine)
    const calls = Array.from({ length: 10 }, async () => sets.for('proj_1', 'response'))
    const [first, ...others] = await Promise.all(calls)
    expect(first?.set.rules).toHaveLength(521)
    for (const other of others) expect(other).toBe(first)
  })
  expect(heldMs).toBeLessThan(50)
})

test('many first calls at once hold it no longer than one', async () => {
  const compiled = await compileNamed()
  const heldMs = await leastHoldMs(async () => {
    const snapshots = Array.from({ length: 5 }, (_, index) =>
      makeSnapshot(`org_${index}`, 1, [...compiled.values()]),
    )
    await Promise.all(
      snapshots.map(async (each) => ruleSetsOf(each, engine).for('proj_1', 'response')),
    )
  })
  expect(heldMs).toBeLessThan(50)
})

/** Counts the patterns that are compiled. */
function countingEngine() {
  const counting: PatternEngine & { compiled: number } = {
    ...engine,
    compiled: 0,
    compile(pattern) {
      counting.compiled++
      return engine.compile(pattern)
    },
  }
  return counting
}

test('work that is given up goes on where it was, and compiles nothing twice', async () => {
  const counting = countingEngine()
  const compiled: CompiledVersions = new Map()
  const versions = manyPatterns.slice(0, 10)
  const sources = versions.map((each) => ({ ...each, name: '' }))
  let tries = 0
  while (compiled.size < versions.length) {
    tries++
    const before = compiled.size
    const stopping = new AbortController()
    const steps = compileVersions(sources, compiled, counting)
    const running = startBackgroundWork(stopping.signal).run(
      (function* () {
        for (;;) {
          const step = steps.next()
          if (step.done) return
          if (compiled.size > before) stopping.abort(new Error('superseded'))
          yield
        }
      })(),
    )
    await running.catch(() => undefined)
  }
  expect(tries).toBeGreaterThan(1)
  expect(counting.compiled).toBeLessThan(10 * 60 * 2)
  const compiledBefore = counting.compiled
  const snapshot = await build(versions, compiled)
  expect(snapshot).toMatchObject({ epoch: 1, policies: { length: 10 } })
  expect(counting.compiled).toBe(compiledBefore)
})
