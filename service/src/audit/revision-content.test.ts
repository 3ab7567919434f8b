import { createHash } from 'node:crypto'

import { expect, test } from 'vitest'

import { writeCanonical } from './canonical-json.ts'
import { buildRevisionEvent, operator } from './event.ts'
import { revisionContent, revisionContentMaxBytes } from './revision-content.ts'

const words = (count: number, first = 'w') =>
  Array.from({ length: count }, (_, at) => `${first}-${at}-${'x'.repeat(100)}`)
const resource = (rules: object, more: object = {}) => ({
  id: 'policy-gateway',
  object: 'policy_gateway.config',
  config: { name: 'Named', rules },
  revision: 1,
  created_at: '2026-01-01T00:00:00Z',
  ...more,
})
const bytesOf = (content: object) => Buffer.byteLength(JSON.stringify(content))

test('a small change has the whole resource before and after', () => {
  const [before, after] = [resource({ denylist: [] }), resource({ denylist: ['a'] })]
  expect(revisionContent({ before, after }, 'hist_1')).toEqual({ before, after })
  expect(revisionContent({ before: null, after }, undefined)).toEqual({ before: null, after })
})

test('of a large resource it has the members that have changed, and what the resource is', () => {
  const allowlist = words(1000)
  const before = resource({ allowlist, denylist: ['a'], contact: 'Bob' })
  const after = resource({ allowlist, denylist: ['a', 'b'], redact: true }, { revision: 2 })
  const ofResource = { id: 'policy-gateway', object: 'policy_gateway.config' }
  expect(revisionContent({ before, after }, 'hist_1')).toEqual({
    before: {
      ...ofResource,
      revision: 1,
      config: { rules: { denylist: ['a'], contact: 'Bob' } },
    },
    after: {
      ...ofResource,
      revision: 2,
      config: { rules: { denylist: ['a', 'b'], redact: true } },
    },
    reduced: 'changed_members',
  })
})

test('beyond that it has hashes of the whole members, and where the history has them', () => {
  const [before, after] = [
    resource({ denylist: words(1000) }),
    resource({ denylist: words(1000, 'v') }, { revision: 2 }),
  ]
  const ofResource = { id: 'policy-gateway', object: 'policy_gateway.config' }
  const hashed = ({ config }: typeof before) => {
    const text = writeCanonical(config as never)
    const sha256 = createHash('sha256').update(text).digest('hex')
    return { sha256, bytes: Buffer.byteLength(text) }
  }
  expect(revisionContent({ before, after }, 'hist_1')).toEqual({
    before: { ...ofResource, config: hashed(before), revision: 1 },
    after: { ...ofResource, config: hashed(after), revision: 2 },
    reduced: 'hashes',
    history_id: 'hist_1',
  })
})

test.each([
  ['created', null, resource({ denylist: words(2000) })],
  ['updated', resource({ denylist: words(2000) }), resource({ denylist: words(2000, 'v') })],
  ['deleted', resource({ denylist: words(2000) }), null],
] as const)(
  'the event of a resource of a quarter megabyte is small: %s',
  (action, before, after) => {
    const change = { before, after } as { before: typeof before; after: NonNullable<typeof after> }
    const event = buildRevisionEvent(
      { organizationId: 'org_1', by: operator, action, ...change },
      new Date(),
    )
    expect(bytesOf({ before, after })).toBeGreaterThan(200_000)
    expect(event.payload.length).toBeLessThan(2000)
  },
)

test('many changed members of any length are never more than the limit', () => {
  for (const length of [10, 255, 256, 257, 2000, 100_000]) {
    const members = Object.fromEntries(
      Array.from({ length: 60 }, (_, at) => [`member_${at}`, 'é'.repeat(length)]),
    )
    const change = { before: resource({}), after: resource({}, members) }
    expect(bytesOf(revisionContent(change, undefined))).toBeLessThanOrEqual(revisionContentMaxBytes)
  }
})
