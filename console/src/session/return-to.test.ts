import { expect, test } from 'vitest'

import { signInAddress } from './return-to.ts'

test.each([
  ['/console/', '/console'],
  ['/console/projects/proj_1/keys', '/console/projects/proj_1/keys'],
  ['/console/members/', '/console/members'],
  ['/console/a%2Fb', '/console'],
  ['//evil.example/console', '/console'],
])('from %s a person comes back to %s', (path, expected) => {
  expect(signInAddress(path)).toBe(`/auth/sign_in?return_to=${expected}`)
})
