import { expect, test } from 'vitest'

import type { Approval } from './approval-store.ts'
import { findConsent } from './two-persons.ts'

const approval = (change: Partial<Approval> = {}): Approval => ({
  id: 'apr_1',
  policyId: 'pol_1',
  revision: 3,
  memberId: 'mem_b',
  createdAt: new Date(0),
  memberRole: 'policy_publisher',
  isMemberActive: true,
  ...change,
})

const member = (id: string) =>
  ({ id, email: 'a@example.com', name: 'A', role: 'admin', projectRoles: new Map() }) as const
const person = (id: string) => ({ credentialId: id, member: member(id) })
const key = { credentialId: 'key_1', member: null }

test.each([
  ['another member approved this revision', [approval()], person('mem_a'), 'mem_c', 'given'],
  ['a key publishes with it', [approval()], key, 'mem_c', 'given'],
  ['nothing was approved', [], person('mem_a'), 'mem_c', 'missing'],
  ['only the caller approved', [approval()], person('mem_b'), 'mem_c', 'missing'],
  ['only the one who drafted approved', [approval()], person('mem_a'), 'mem_b', 'missing'],
  ['an older one was approved', [approval({ revision: 2 })], person('mem_a'), null, 'outdated'],
  ['a later one', [approval({ revision: 4 })], person('mem_a'), null, 'outdated'],
  ['the member is suspended', [approval({ isMemberActive: false })], key, null, 'missing'],
  [
    'the member may only edit now',
    [approval({ memberRole: 'policy_editor' })],
    key,
    null,
    'missing',
  ],
  [
    'one of several counts',
    [approval({ memberId: 'mem_a' }), approval({ revision: 2 }), approval({ memberId: 'mem_d' })],
    person('mem_a'),
    'mem_b',
    'given',
  ],
] as const)('%s', (...[, approvals, caller, draftedBy, kind]) => {
  expect(findConsent(approvals, { revision: 3, draftedBy, caller }).kind).toBe(kind)
})
