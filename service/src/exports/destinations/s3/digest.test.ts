import { expect, test } from 'vitest'

import { writeDigest } from './digest.ts'

const stored = (number: number, folder = '') => ({
  key: `p/${folder}${number}`,
  sha256: 'ab'.repeat(32),
  bytes: 10,
  first: number,
  last: number,
})
const hour = { from: '2026-03-05T10:00:00Z', to: '2026-03-05T11:00:00Z' }
const later = { from: '2026-03-05T11:00:00Z', to: '2026-03-05T12:00:00Z' }

test('a digest names the one before it, and nothing else of it', () => {
  const previous = { ...stored(1), key: 'p/digests/1' }
  const digest = { orgId: 'org_1', ...hour, objects: [stored(2)] as const, previous }
  const { text } = writeDigest('p/', digest)
  expect(JSON.parse(text)).toMatchObject({
    previous: { key: 'p/digests/1', sha256: previous.sha256 },
  })
  expect(text.endsWith('}\n')).toBe(true)
})

test('the same digest has the same name and text, and that of another hour another name', () => {
  const event = { orgId: 'org_1', ...hour, objects: [stored(10)] as const, previous: null }
  const checkpoint = { ...event, ...later, objects: [stored(10, 'checkpoints/')] as const }
  expect(writeDigest('p/', event)).toEqual(writeDigest('p/', event))
  expect(writeDigest('p/', event).key).not.toBe(writeDigest('p/', checkpoint).key)
})

test('numbers are those of all objects, in whatever order they were stored', () => {
  const objects = [stored(30), stored(4), stored(12)] as const
  const digest = { orgId: 'org_1', ...hour, objects, previous: null }
  expect(writeDigest('p/', digest)).toMatchObject({ first: 4, last: 30 })
})
