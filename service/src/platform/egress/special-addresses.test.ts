import fc from 'fast-check'
import { expect, test } from 'vitest'

import { isPublicAddress } from './special-addresses.ts'

// Written a second time, as first and last address and as a deny list only, to disagree with slips.
const specialIpv4 = `
  0.0.0.0 0.255.255.255            10.0.0.0 10.255.255.255          100.64.0.0 100.127.255.255
  127.0.0.0 127.255.255.255        168.63.129.16 168.63.129.16      169.254.0.0 169.254.255.255
  172.16.0.0 172.31.255.255        192.0.0.0 192.0.0.255            192.0.2.0 192.0.2.255
  192.31.196.0 192.31.196.255      192.52.193.0 192.52.193.255      192.88.99.0 192.88.99.255
  192.168.0.0 192.168.255.255      192.175.48.0 192.175.48.255      198.18.0.0 198.19.255.255
  198.51.100.0 198.51.100.255      203.0.113.0 203.0.113.255        224.0.0.0 255.255.255.255`

const specialIpv6 = `
  0:0:0:0:0:0:0:0         1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
  2001:0:0:0:0:0:0:0      2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff
  2001:db8:0:0:0:0:0:0    2001:db8:ffff:ffff:ffff:ffff:ffff:ffff
  2002:0:0:0:0:0:0:0      2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff
  2620:4f:8000:0:0:0:0:0  2620:4f:8000:ffff:ffff:ffff:ffff:ffff
  3ffe:0:0:0:0:0:0:0      3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff
  3fff:0:0:0:0:0:0:0      3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff
  4000:0:0:0:0:0:0:0      ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff`

const join = (parts: readonly number[], bits: bigint) =>
  parts.reduce((sum, part) => (sum << bits) | BigInt(part), 0n)
const ipv4Number = (ip: string) => join(ip.split('.').map(Number), 8n)
const ipv4Text = (value: bigint) =>
  [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 255n).join('.')
const ipv6Text = (value: bigint) =>
  [112n, 96n, 80n, 64n, 48n, 32n, 16n, 0n]
    .map((shift) => ((value >> shift) & 0xffffn).toString(16))
    .join(':')

function ipv6Number(ip: string): bigint {
  const hex = ip.replace(/[\d.]+\.\d+$/, (dotted) => {
    const value = ipv4Number(dotted)
    return `${(value >> 16n).toString(16)}:${(value & 0xffffn).toString(16)}`
  })
  const [head = [], tail = []] = hex
    .split('::')
    .map((half) => half.split(':').filter((group) => group !== ''))
    .map((half) => half.map((group) => Number.parseInt(group, 16)))
  return join([...head, ...Array<number>(8 - head.length - tail.length).fill(0), ...tail], 16n)
}

function ranges(table: string, toNumber: (ip: string) => bigint): [bigint, bigint][] {
  const ends = table.trim().split(/\s+/).map(toNumber)
  return ends.flatMap((first, index) => (index % 2 === 0 ? [[first, ends[index + 1]!]] : []))
}

const rangesIpv4 = ranges(specialIpv4, ipv4Number)
const rangesIpv6 = ranges(specialIpv6, ipv6Number)

function isPublicSlowly(ip: string): boolean {
  const [value, special] = ip.includes(':')
    ? [ipv6Number(ip), rangesIpv6]
    : [ipv4Number(ip), rangesIpv4]
  if (special.some(([first, last]) => first <= value && value <= last)) return false
  const middle = (value >> 32n) & 0xffff_ffffn
  return !(ip.includes(':') && (middle === 0x5efen || middle === 0x0200_5efen))
}

/** Uniform addresses hardly ever meet a small range, so most are drawn around the edges of one. */
const near = (special: [bigint, bigint][], bits: bigint) =>
  fc
    .tuple(fc.constantFrom(...special.flat()), fc.bigInt({ min: -300n, max: 300n }))
    .map(([edge, distance]) => BigInt.asUintN(Number(bits), edge + distance))
const below = (end: bigint) => fc.bigInt({ min: 0n, max: end - 1n })

const address = fc.oneof(
  fc.ipV4(),
  below(1n << 32n).map(ipv4Text),
  near(rangesIpv4, 32n).map(ipv4Text),
  fc.ipV6(),
  below(1n << 125n).map((rest) => ipv6Text((1n << 125n) | rest)),
  near(rangesIpv6, 128n).map(ipv6Text),
  fc
    .tuple(below(1n << 61n), fc.constantFrom(0x5efen, 0x0200_5efen, 0x0100_5efen), below(1n << 32n))
    .map(([net, mark, ipv4]) => ipv6Text((1n << 125n) | (net << 64n) | (mark << 32n) | ipv4)),
)

test('agrees with a second, slow implementation on 10,000 addresses', () => {
  const seen = { public: 0, special: 0 }
  fc.assert(
    fc.property(address, (ip) => {
      seen[isPublicSlowly(ip) ? 'public' : 'special'] += 1
      expect(isPublicAddress(ip), ip).toBe(isPublicSlowly(ip))
    }),
    { numRuns: 10_000 },
  )
  // Both answers must have been asked for, or the agreement says little.
  expect(Math.min(seen.public, seen.special)).toBeGreaterThan(1000)
})

test('the first and the last address of every range are special, their neighbours are not', () => {
  // 0/8 has nothing before it, and multicast nothing after it.
  const isOutside = (value: bigint, special: [bigint, bigint][], end: bigint) =>
    value >= 0n && value < end && !special.some(([a, b]) => a <= value && value <= b)
  for (const [first, last] of rangesIpv4) {
    expect([first, last].map(ipv4Text).filter(isPublicAddress)).toEqual([])
    const outside = [first - 1n, last + 1n].filter((ip) => isOutside(ip, rangesIpv4, 1n << 32n))
    expect(outside.map(ipv4Text).every(isPublicAddress)).toBe(true)
  }
  for (const [first, last] of rangesIpv6) {
    expect([first, last].map(ipv6Text).filter(isPublicAddress)).toEqual([])
    const outside = [first - 1n, last + 1n].filter((ip) => isOutside(ip, rangesIpv6, 1n << 128n))
    expect(outside.map(ipv6Text).every(isPublicAddress)).toBe(true)
  }
})

test.each(['1.1.1.1', '8.8.8.8', '93.184.216.34', '2606:4700:4700::1111', '2a00:1450:4001::200e'])(
  'the well-known %s is public',
  (ip) => {
    expect(isPublicAddress(ip)).toBe(true)
  },
)

test.each([
  '',
  'localhost',
  'sink.example.com',
  '1.1.1',
  '1.1.1.1.1',
  '01.1.1.1',
  '1.1.1.256',
  ' 1.1.1.1',
  '16843009',
  '0x1010101',
  '[2606:4700::1111]',
  '2606:4700:::1111',
  '1.1.1.1/32',
  '1.1.1.1:443',
  '1.1.1.1\n',
  '1.1.1.1%eth0',
  'fe80::1%eth0',
  '2606:4700::1111%1',
  '2606:4700::1111%',
])('what is not an address, or names an interface, is not public: %j', (text) => {
  expect(isPublicAddress(text)).toBe(false)
})

test.each([
  '::ffff:8.8.8.8',
  '::8.8.8.8',
  '64:ff9b::8.8.8.8',
  '2002:808:808::1',
  '2001:0:808:808::',
])('an IPv4 address hidden in %s is refused, even a public one', (ip) => {
  expect(isPublicAddress(ip)).toBe(false)
})
