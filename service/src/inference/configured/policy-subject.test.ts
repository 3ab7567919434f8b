import { expect, test } from 'vitest'

import type { Principal } from '#http/principal.ts'

import { readPolicySubject } from './policy-subject.ts'

const caller = { kind: 'jwt', subject: 'sub-1' } as Principal

test('without headers a call is for whom its credential stands', () => {
  expect(readPolicySubject({}, caller)).toEqual({
    policySubject: { user: null, target: null, subject: 'sub-1' },
    error: null,
  })
})

test('the user of the header is drawn instead of the credential', () => {
  const headers = { 'x-policy-user': 'ada', 'x-policy-target': 'support bot' }
  expect(readPolicySubject(headers, caller)).toEqual({
    policySubject: { user: 'ada', target: 'support bot', subject: 'ada' },
    error: null,
  })
})

test.each([
  ['x-policy-user', ''],
  ['x-policy-user', 'a'.repeat(201)],
  ['x-policy-user', 'tab\there'],
  ['x-policy-target', 'gr\u00fcn'],
])('a malformed %s is refused', (name, value) => {
  const { policySubject, error } = readPolicySubject({ [name]: value }, caller)
  expect(policySubject.subject).toBe('sub-1')
  expect(error).toMatchObject({ status: 400, code: 'invalid_request' })
  expect(error?.param?.toLowerCase()).toBe(`header.${name}`)
})

test('those of an anonymous caller are not read', () => {
  const { policySubject, error } = readPolicySubject(
    { 'x-policy-user': 'ada', 'x-policy-target': '' },
    { ...caller, kind: 'anonymous' },
  )
  expect([policySubject.user, policySubject.target, error]).toEqual([null, null, null])
})
