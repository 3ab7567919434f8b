import fc from 'fast-check'
import { expect, test } from 'vitest'

import { addressPrefix } from './client-address.ts'

test.each([
  ['203.0.113.7', '203.0.113.7'],
  ['::ffff:203.0.113.7', '203.0.113.7'],
  ['::FFFF:203.0.113.7', '203.0.113.7'],
  ['::ffff:cb00:7107', '203.0.113.7'],
  ['0:0:0:0:0:ffff:203.0.113.7', '203.0.113.7'],
  ['::1', '0:0:0:0::/64'],
  ['::', '0:0:0:0::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['2001:0DB8:0001:0002:3:4:5:6', '2001:db8:1:2::/64'],
  ['1::', '1:0:0:0::/64'],
  ['1:2:3:4:5:6:7::', '1:2:3:4::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['fe80::1%25', 'fe80:0:0:0::/64'],
  ['a::b:c:d:1.2.3.4', 'a:0:0:b::/64'],
  ['64:ff9b::203.0.113.7', '64:ff9b:0:0::/64'],
  ['', ''],
  ['unknown', 'unknown'],
])('%s counts as %s', (address, prefix) => {
  expect(addressPrefix(address)).toBe(prefix)
})

const group = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xff_ff }))
const groups = (length: number) => fc.array(group, { minLength: length, maxLength: length })
const hex = (values: readonly number[]) => values.map((value) => value.toString(16))

/** Spells eight groups in one of the ways a proxy or a person might. */
function spell(values: readonly number[], from: number, length: number): string {
  const texts = hex(values).map((text, index) =>
    index % 2 === 0 ? text.toUpperCase() : text.padStart(4, '0'),
  )
  const end = Math.min(from + length, 8)
  const isHidden = end > from && values.slice(from, end).every((value) => value === 0)
  return isHidden
    ? `${texts.slice(0, from).join(':')}::${texts.slice(end).join(':')}`
    : texts.join(':')
}
const isMapped = (values: readonly number[]) =>
  values.slice(0, 5).every((value) => value === 0) && values[5] === 0xff_ff

test('all spellings of an address count as the same caller', () => {
  const place = fc.integer({ min: 0, max: 8 })
  const mapped = groups(2).map((values) => [0, 0, 0, 0, 0, 0xff_ff, ...values])
  fc.assert(
    fc.property(fc.oneof(groups(8), mapped), place, place, (values, from, length) => {
      expect(addressPrefix(spell(values, from, length))).toBe(addressPrefix(hex(values).join(':')))
    }),
    { numRuns: 500 },
  )
})

test('addresses of one /64 count as one caller, addresses of two as two', () => {
  fc.assert(
    fc.property(groups(4), groups(4), groups(4), groups(4), (net, host, otherNet, otherHost) => {
      const [first, second] = [
        [...net, ...host],
        [...net, ...otherHost],
      ]
      fc.pre(!isMapped(first) && !isMapped(second))
      const prefix = addressPrefix(hex(first).join(':'))
      expect(prefix).toBe(addressPrefix(hex(second).join(':')))
      const other = addressPrefix(hex([...otherNet, ...host]).join(':'))
      expect(prefix === other).toBe(hex(net).join() === hex(otherNet).join())
    }),
  )
})

test('every IPv4 address is a caller of its own, mapped or not', () => {
  fc.assert(
    fc.property(fc.ipV4(), fc.ipV4(), (one, other) => {
      expect(addressPrefix(`::ffff:${one}`)).toBe(one)
      expect(addressPrefix(one)).toBe(one)
      expect(addressPrefix(`::ffff:${one}`) === addressPrefix(other)).toBe(one === other)
    }),
  )
})
