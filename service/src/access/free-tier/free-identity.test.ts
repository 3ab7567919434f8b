import { createSecretKey } from 'node:crypto'

import { expect, test } from 'vitest'

import { createFreeIdentity } from './free-identity.ts'

const oldKey = createSecretKey(Buffer.alloc(32, 1))
const newKey = createSecretKey(Buffer.alloc(32, 2))
const identityOf = createFreeIdentity([oldKey])

const hexOf = (address: string) => identityOf(address)?.identities[0].toString('hex')
const networkOf = (address: string, length: 48 | 56) =>
  identityOf(address)
    ?.networks.find(({ prefixLength }) => prefixLength === length)
    ?.hash.toString('hex')

test.each([
  ['192.0.2.1', '::ffff:192.0.2.1'],
  ['192.0.2.1', '::FFFF:c000:201'],
  ['2001:db8::1', '2001:db8::2'],
  ['2001:db8::1', '2001:0DB8:0:0:ffff:ffff:ffff:ffff'],
  ['fe80::1%eth0', 'fe80::1'],
  ['fe80::1%eth0', 'fe80::2%eth1'],
])('%s and %s are one caller', (one, other) => {
  expect(hexOf(one)).toMatch(/^[0-9a-f]{64}$/)
  expect(hexOf(other)).toBe(hexOf(one))
})

test.each([
  ['192.0.2.1', '192.0.2.2'],
  ['2001:db8::1', '2001:db8:0:1::1'],
  ['::ffff:192.0.2.1', '::ffff:192.0.2.2'],
  ['0.0.0.0', '::'],
])('%s and %s are two callers', (one, other) => {
  expect(hexOf(other)).not.toBe(hexOf(one))
})

test.each([
  '',
  'unknown',
  '_hidden',
  '192.0.2.1:443',
  '[2001:db8::1]',
  '192.0.2.01',
  '192.0.2.1, 192.0.2.2',
  '2001:db8::/64',
  '2001:db8:0:0::/64',
  'x'.repeat(10_000),
])('%s has no identity', (address) => {
  expect(identityOf(address)).toBeNull()
})

test('an IPv6 caller belongs to a /56 and a /48, an IPv4 one to neither', () => {
  expect(identityOf('192.0.2.1')?.networks).toEqual([])
  expect(identityOf('2001:db8:1:2::1')?.networks.map((each) => each.prefixLength)).toEqual([48, 56])
})

test.each([
  ['2001:db8:1:ab00::', '2001:db8:1:abff::', { 56: true, 48: true }],
  ['2001:db8:1:ab00::', '2001:db8:1:ac00::', { 56: false, 48: true }],
  ['2001:db8:1:12::', '2001:db8:1::', { 56: true, 48: true }],
  ['2001:db8:1:ab00::', '2001:db8:2:ab00::', { 56: false, 48: false }],
])('%s and %s have the expected networks in common', (one, other, shared) => {
  expect(networkOf(one, 56) === networkOf(other, 56)).toBe(shared[56])
  expect(networkOf(one, 48) === networkOf(other, 48)).toBe(shared[48])
  expect(networkOf(one, 48)).not.toBe(networkOf(one, 56))
})

test('no hash of a network is the hash of another kind of network', () => {
  const { identities, networks } = identityOf('2001:db8::1')!
  const hashes = [...identities, ...networks.map(({ hash }) => hash)]
  expect(new Set(hashes.map((hash) => hash.toString('hex'))).size).toBe(3)
})

test('with a new key an identity has the hashes of both keys', () => {
  const [before] = identityOf('192.0.2.1')!.identities
  const { identities } = createFreeIdentity([newKey, oldKey])('192.0.2.1')!
  expect(identities).toHaveLength(2)
  expect(identities[0]).not.toEqual(before)
  expect(identities[1]).toEqual(before)
})
