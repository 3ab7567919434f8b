import { createHmac, randomBytes } from 'node:crypto'

import fc from 'fast-check'
import { expect, test } from 'vitest'

import { createSecretBox, deriveKey, type MasterKey, type Purpose } from './secrets.ts'

const master = (version: number): MasterKey => ({ version, bytes: randomBytes(32) })
const [first, second] = [master(1), master(2)]
const box = createSecretBox([first])
const context = 'export/config/exp_1/org_1'
const notAuthentic = /unable to authenticate data/

test('any sealed value can be opened', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.string(), (bytes, anyContext) => {
      const plaintext = Buffer.from(bytes)
      expect(box.open(box.seal(plaintext, anyContext), anyContext)).toEqual(plaintext)
    }),
  )
})

test('the same secret is never sealed to the same bytes, and never stands in them', () => {
  const plaintext = Buffer.from('canary-7f3a91c2')
  const sealed = [1, 2].map(() => box.seal(plaintext, context))
  expect(sealed[0]!.subarray(2).equals(sealed[1]!.subarray(2))).toBe(false)
  for (const each of sealed) expect(each.includes(plaintext)).toBe(false)
})

test('a sealed value that was moved does not open', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (from, to) => {
      fc.pre(Buffer.compare(Buffer.from(from), Buffer.from(to)) !== 0)
      const sealed = box.seal(Buffer.from('x'), from)
      expect(() => box.open(sealed, to)).toThrow(notAuthentic)
    }),
  )
})

test('a value with any one bit flipped does not open', () => {
  const both = createSecretBox([first, second])
  const sealed = both.seal(Buffer.from('a secret'), context)
  for (let bit = 0; bit < sealed.length * 8; bit++) {
    const changed = Buffer.from(sealed)
    changed[bit >> 3]! ^= 1 << (bit & 7)
    expect(() => both.open(changed, context)).toThrow(/authenticate|No master key/)
  }
})

test('a value that was cut or extended does not open', () => {
  const sealed = box.seal(Buffer.from('a secret'), context)
  for (let length = 0; length < sealed.length; length++) {
    expect(() => box.open(sealed.subarray(0, length), context)).toThrow(
      /authenticat|initialization|bounds|range/,
    )
  }
  expect(() => box.open(Buffer.concat([sealed, Buffer.alloc(1)]), context)).toThrow(notAuthentic)
})

test('a short authentication tag is refused before anything is compared', () => {
  const sealed = box.seal(Buffer.alloc(0), context)
  const short = sealed.subarray(0, 2 + 60 + 4)
  expect(() => box.open(short, context)).toThrow(/tag length/i)
})

test('parts of two sealed values cannot be combined', () => {
  const [left, right] = ['one', 'two'].map((text) => box.seal(Buffer.from(text), context))
  const mixed = Buffer.concat([left!.subarray(0, 62), right!.subarray(62)])
  expect(() => box.open(mixed, context)).toThrow(notAuthentic)
})

test('after a rotation the old value opens, and a new one is written with the new key', () => {
  const old = box.seal(Buffer.from('old'), context)
  const rotated = createSecretBox([second, first])
  expect(rotated.open(old, context).toString()).toBe('old')
  const renewed = rotated.seal(Buffer.from('new'), context)
  expect(createSecretBox([second]).open(renewed, context).toString()).toBe('new')
})

test('opening a value of a removed master key names the missing version', () => {
  const sealed = createSecretBox([second]).seal(Buffer.from('x'), context)
  expect(() => box.open(sealed, context)).toThrow('No master key with version 2 is configured.')
})

test('another master key with the same version does not open', () => {
  const sealed = box.seal(Buffer.from('x'), context)
  expect(() => createSecretBox([master(1)]).open(sealed, context)).toThrow(notAuthentic)
})

test('what the first release sealed still opens', () => {
  const sealed = Buffer.from(
    'AAf+3R59+ja8cx6RCO5WS39N2xTbwHc494yY6xtXN05SO5ov9HZpvf9jjO+pHR+UwmYb04Y2eVQiMcKiYHM83lQ4vA7A1sWjFb3LHKvFQQMmLa/DXzjQ5VEz2sBp6A==',
    'base64',
  )
  const keyring = [{ version: 7, bytes: Buffer.from('0123456789abcdef0123456789abcdef') }] as const
  expect(createSecretBox(keyring).open(sealed, 'table/column/row/org').toString()).toBe('kept')
})

const purposes = [
  'key-pepper',
  'address-hash',
  'file-authentication',
  'free-request-identity',
  'secret-encryption',
] satisfies Purpose[]

test('each purpose of each master key has a key of its own', () => {
  const keys = [first, second].flatMap((each) =>
    purposes.map((purpose) => deriveKey(each, purpose).export().toString('hex')),
  )
  expect(new Set([...keys, first.bytes.toString('hex')]).size).toBe(11)
})

test.each(purposes)('the key for %s follows RFC 5869, so stored hashes stay valid', (purpose) => {
  const extracted = createHmac('sha256', Buffer.alloc(32)).update(first.bytes).digest()
  const expanded = createHmac('sha256', extracted).update(`gatehouse/${purpose}\u0001`).digest()
  expect(deriveKey(first, purpose).export()).toEqual(expanded)
})
