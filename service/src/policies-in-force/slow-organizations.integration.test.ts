import { createPolicy, publishPolicy } from '@gatehouse/contract/policy'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { expect, onTestFinished, test } from 'vitest'

import { silentLog } from '#testing/silent-log.ts'
import { createTestApi } from '#testing/test-api.ts'
import { createTestClock } from '#testing/test-gateway.ts'
import { loadPatternEngine } from '#text/pattern-engine.ts'

import { createUnfinished } from './compiled-versions.ts'
import { createInForce } from './in-force.ts'
import { createBuilds } from './run-builds.ts'
import { readPublished } from './snapshot-store.ts'

const policies = 12
const compileMs = 150

/** Needs so long for every pattern, as processor time, and counts them. */
function slowEngine() {
  const native = loadPatternEngine()
  const engine = {
    ...native,
    compiled: 0,
    compile(pattern: string) {
      engine.compiled++
      const startedMs = performance.now()
      while (performance.now() - startedMs < compileMs);
      return native.compile(pattern)
    },
  }
  return engine
}

/** An organization whose policies take almost two seconds to compile, and builds of another process. */
async function setUp() {
  const api = await createTestApi()
  for (let index = 0; index < policies; index++) {
    const rule = `cel: text.matches("pattern${index}")`
    const body = { name: `Policy ${index}`, rule, mode: 'enforcing', scope: 'organization' }
    const { id } = (await api.send(createPolicy, { body })).body
    const published = await api.send(publishPolicy, {
      params: { policy_id: id },
      body: { revision: 1 },
    })
    expect(published.status).toBe(200)
  }
  const { organizationId } = api.organization
  const [slow] = await readPublished(api.db, [organizationId])
  const clock = createTestClock()
  const [inForce, engine] = [createInForce(clock), slowEngine()]
  const unfinished = createUnfinished()
  const { secretBox } = api.house.mutations
  const builds = createBuilds({
    db: api.db,
    log: silentLog,
    engine,
    secretBox,
    inForce,
    unfinished,
  })
  onTestFinished(() => builds.stop())
  inForce.confirm(clock.now().getTime())
  return { organizationId, slow: slow!, inForce, engine, builds }
}

const quick = { organizationId: 'org_quick', epoch: 1, policies: [], gateway: null, guardrails: [] }

test('a slow organization does not delay another, fails meanwhile, and is in force in the end', async () => {
  const { organizationId, slow, inForce, builds } = await setUp()
  builds.want(slow)
  builds.want(quick)
  const first = await builds.settle(60_000)
  expect(inForce.get('org_quick')).toBeDefined()
  expect([...inForce.failures.keys()]).toEqual([organizationId])
  expect(() => inForce.pin(organizationId)).toThrow('cannot be loaded')
  expect(first).toEqual({ changes: 2, unread: [] })

  // The same again, as when it is retried, neither begins anew nor is waited for.
  builds.want(slow)
  expect(await builds.settle(60_000)).toEqual({ changes: 0, unread: [] })
  await waitUntil(() => inForce.get(organizationId) !== undefined)
  expect(inForce.get(organizationId)).toMatchObject({ policies: { length: policies } })
  expect(inForce.failures.size).toBe(0)
  expect(await builds.settle(60_000)).toEqual({ changes: 1, unread: [] })
})

test('a newer state goes on with what was compiled, and the older one is never in force', async () => {
  const { organizationId, slow, inForce, engine, builds } = await setUp()
  builds.want(slow)
  await waitUntil(() => engine.compiled > policies / 2)
  const newer = { ...slow, epoch: slow.epoch + 1 }
  builds.want(newer)
  await waitUntil(() => inForce.get(organizationId) !== undefined)
  expect(inForce.get(organizationId)?.epoch).toBe(newer.epoch)
  // At most the one that was being compiled is compiled twice.
  expect(engine.compiled).toBeLessThanOrEqual(policies + 1)
})

test('without time to wait, what is not ready counts as failing', async () => {
  const { organizationId, slow, inForce, builds } = await setUp()
  builds.want(slow)
  expect(await builds.settle(0)).toEqual({ changes: 1, unread: [] })
  expect(inForce.failures.has(organizationId)).toBe(true)
  builds.forget(organizationId)
  expect(builds.ids()).toEqual([])
})
