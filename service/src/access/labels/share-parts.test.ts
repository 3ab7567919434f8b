import { expect, test } from 'vitest'

import { createSharing } from './share-parts.ts'

const none = { allowed_models: null, project_labels: null }

test('equal parts are one, and others keep their content', () => {
  const share = createSharing()
  const models = (allowed_models: string[]) => share({ ...none, allowed_models }).allowed_models
  const first = models(['a', 'b'])
  expect(models(['a', 'b'])).toBe(first)
  expect(models(['b', 'a'])).toEqual(['b', 'a'])
  expect(models(['a b'])).toEqual(['a b'])
  expect(models([])).toEqual([])
  const labels = (project_labels: object) =>
    share({ ...none, project_labels: { ...project_labels } }).project_labels
  expect(labels({ team: 'a' })).toBe(labels({ team: 'a' }))
  expect(labels({ team: 'b' })).toEqual({ team: 'b' })
  expect(share({ ...none, id: 'key_1' })).toEqual({ ...none, id: 'key_1' })
})

test('what it keeps is bounded', () => {
  const share = createSharing()
  const models = (id: string) => share({ ...none, allowed_models: [id] }).allowed_models
  const first = models('first')
  for (let each = 0; each < 20_000; each++) expect(models(`m${each}`)).toEqual([`m${each}`])
  const again = models('first')
  expect(again).toEqual(first)
  expect(again).not.toBe(first)
})
