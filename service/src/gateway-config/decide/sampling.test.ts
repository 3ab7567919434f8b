import { GivenGatewayConfig } from '@gatehouse/contract/policy-gateway/config'
import { expect, test } from 'vitest'

import { type Arm, armOf, simulatedMode } from './arm.ts'
import { bucketOf } from './bucket.ts'

const key = Buffer.alloc(32, 7)
const subjects = Array.from({ length: 10_000 }, (_, index) => `user-${index}`)

const rolloutOf = (rollout: object) => GivenGatewayConfig.parse({ rollout }).rollout
const share = (sample_percent: number, targets: string[] = []) => ({
  enabled: true,
  sample_percent,
  targets,
})
const draw = (samplingRevision = 1, of = subjects) =>
  of.map((subject) => bucketOf({ key, policyId: 'p', samplingRevision, subject }))
const drawn = draw()

function armsOf(given: object, buckets = drawn) {
  const rollout = rolloutOf(given)
  return buckets.map((bucket) =>
    armOf(rollout, { bucket, targets: ['messages'], isRolledBack: false }),
  )
}
const percentOf = (arm: Arm, arms: readonly Arm[]) =>
  (arms.filter((each) => each === arm).length / arms.length) * 100

test('a bucket is known: it does not change from release to release', () => {
  const subject = 'key_06f8q3k2r5s7t9v1w3x5y7f6'
  expect(bucketOf({ key, policyId: 'policy-gateway', samplingRevision: 3, subject })).toBe(18.71)
})

test('a bucket depends on the key, the policy, the revision and the subject, and on where one ends', () => {
  const base = { key, policyId: 'p', samplingRevision: 1, subject: '1' }
  const others = [
    { ...base, key: Buffer.alloc(32, 8) },
    { ...base, policyId: 'p1' },
    { ...base, samplingRevision: 11 },
    { ...base, subject: '11' },
  ]
  const buckets = [base, ...others].map(bucketOf)
  expect(new Set(buckets).size).toBe(buckets.length)
})

test.each([0, 0.5, 1, 10, 33.3, 50, 90, 100])('%d %% is a share within a point', (percent) => {
  const arms = armsOf({ canary: share(percent) })
  expect(Math.abs(percentOf('canary', arms) - percent)).toBeLessThan(1)
  const both = armsOf({ canary: share(percent / 2), shadow: share(percent / 2) })
  expect(Math.abs(percentOf('canary', both) - percent / 2)).toBeLessThan(1)
  expect(Math.abs(percentOf('shadow', both) - percent / 2)).toBeLessThan(1)
})

test('no subject and every subject, exactly', () => {
  expect(percentOf('canary', armsOf({ canary: share(0) }))).toBe(0)
  expect(percentOf('canary', armsOf({ canary: share(100) }))).toBe(100)
})

test('the same subject is always in the same arm, and a higher percentage only adds subjects', () => {
  expect(draw()).toEqual(drawn)
  let before = new Set<number>()
  for (const percent of [1, 2, 5, 12.5, 50, 99, 100]) {
    const arms = armsOf({ canary: share(percent) })
    const inside = new Set(arms.keys().filter((index) => arms[index] === 'canary'))
    expect([...before].every((index) => inside.has(index))).toBe(true)
    expect(inside.size).toBeGreaterThan(before.size)
    before = inside
  }
})

test('another revision of the rules draws anew', () => {
  const [one, two] = [armsOf({ canary: share(50) }), armsOf({ canary: share(50) }, draw(2))]
  const moved = one.filter((arm, index) => arm !== two[index]).length
  expect(moved).toBeGreaterThan(4500)
  expect(moved).toBeLessThan(5500)
})

const at = (bucket: number, rollout: object, targets = ['messages', 'beta']) =>
  armOf(rolloutOf(rollout), { bucket, targets, isRolledBack: false })

test.each<[bucket: number, rollout: object, arm: Arm]>([
  [0, {}, 'enforced'],
  [99.99, {}, 'enforced'],
  [9.99, { canary: share(10) }, 'canary'],
  [10, { canary: share(10) }, 'outside'],
  [0, { canary: { ...share(10), enabled: false } }, 'enforced'],
  [9.99, { shadow: share(10) }, 'shadow'],
  [10, { shadow: share(10) }, 'outside'],
  [9.99, { canary: share(10), shadow: share(20) }, 'canary'],
  [10, { canary: share(10), shadow: share(20) }, 'shadow'],
  [29.99, { canary: share(10), shadow: share(20) }, 'shadow'],
  [30, { canary: share(10), shadow: share(20) }, 'outside'],
  [99.99, { canary: share(60), shadow: share(60) }, 'shadow'],
  [0, { canary: share(100, ['responses']) }, 'outside'],
  [0, { canary: share(100, ['responses', 'beta']) }, 'canary'],
  [0, { canary: share(100, ['messages']) }, 'canary'],
  [0, { canary: share(100, ['responses']), shadow: share(10) }, 'shadow'],
  [0, { shadow: share(100, ['gamma']) }, 'outside'],
])('bucket %d of %j is %s', (bucket, rollout, arm) => {
  expect(at(bucket, rollout)).toBe(arm)
})

test.each([
  [{}, 'rollback'],
  [{ canary: share(100) }, 'rollback'],
  [{ shadow: share(100) }, 'shadow'],
  [{ canary: share(0) }, 'outside'],
])('a rollback takes back what is enforced, and nothing else: %j', (rollout, arm) => {
  const sampled = { bucket: 0, targets: [], isRolledBack: true }
  expect(armOf(rolloutOf(rollout), sampled)).toBe(arm)
})

test.each([
  [{}, false, 'enforced'],
  [{ shadow: share(0) }, false, 'shadow'],
  [{ canary: share(0) }, false, 'canary'],
  [{ canary: share(1), shadow: share(1) }, false, 'canary'],
  [{ canary: { ...share(100), enabled: false }, shadow: share(1) }, false, 'shadow'],
  [{ canary: share(1) }, true, 'rollback'],
  [{}, true, 'rollback'],
])('a simulation of %j, rolled back: %s, has the mode %s', (rollout, isRolledBack, mode) => {
  expect(simulatedMode(rolloutOf(rollout), isRolledBack)).toBe(mode)
})
