import { createHmac } from 'node:crypto'

import { expect, test } from 'vitest'

import { findSignatureFault } from './signature.ts'

const secret = 'whsec_0123456789abcdef0123456789abcdef'
const other = 'whsec_fedcba9876543210fedcba9876543210'
const now = new Date('2026-06-01T12:00:00Z')
const seconds = now.getTime() / 1000
const body = Buffer.from('{"id":"evt_1","amount":2000}')

/** As Stripe signs: the secret as it is shown, over the time, a dot and the bytes of the body. */
const sign = (at: number | string, bytes = body, by = secret) =>
  createHmac('sha256', by).update(`${at}.`).update(bytes).digest('hex')

const faultOf = (header: unknown, bytes = body, secrets = [secret]) =>
  findSignatureFault({ header, body: bytes }, { secrets, now })

test('a signature computed elsewhere is accepted', () => {
  // printf '1780315200.{"id":"evt_1","amount":2000}' | openssl dgst -sha256 -hmac "$secret"
  const known = '3d4a38b405181c15dad3593a337a904b1bca42b229b02263022ae7a337c6e715'
  expect(faultOf(`t=1780315200,v1=${known}`)).toBeUndefined()
  expect(sign(1_780_315_200)).toBe(known)
})

test.each([
  ['exactly now', seconds],
  ['five minutes ago', seconds - 300],
  ['in five minutes', seconds + 300],
])('a signature of %s is accepted', (_, at) => {
  expect(faultOf(`t=${at},v1=${sign(at)}`)).toBeUndefined()
})

test.each([
  ['a replay after five minutes', seconds - 301],
  ['one from the future', seconds + 301],
])('%s is refused, though it is signed', (_, at) => {
  expect(faultOf(`t=${at},v1=${sign(at)}`)).toContain('300 seconds')
})

test.each([
  ['another secret', `t=${seconds},v1=${sign(seconds, body, other)}`],
  ['another time than it says', `t=${seconds},v1=${sign(seconds - 1)}`],
  ['an empty secret', `t=${seconds},v1=${sign(seconds, body, '')}`],
  ['another body', `t=${seconds},v1=${sign(seconds, Buffer.from('{}'))}`],
  ['nothing at all', `t=${seconds},v1=${'0'.repeat(64)}`],
])('a signature with %s is refused', (_, header) => {
  expect(faultOf(header)).toContain('matches the body')
})

test('every byte of the body counts', () => {
  const header = `t=${seconds},v1=${sign(seconds)}`
  for (let index = 0; index < body.length; index++) {
    const changed = Buffer.from(body)
    changed.writeUInt8(changed.readUInt8(index) ^ 1, index)
    expect(faultOf(header, changed)).toContain('matches the body')
  }
  expect(faultOf(header, Buffer.concat([body, Buffer.from(' ')]))).toContain('matches the body')
})

test('while secrets are rolled, one of several signatures and one of several secrets must fit', () => {
  const header = `t=${seconds},v1=${sign(seconds, body, other)},v1=${sign(seconds)},v0=abc`
  expect(faultOf(header)).toBeUndefined()
  expect(faultOf(`t=${seconds},v1=${sign(seconds)}`, body, [other, secret])).toBeUndefined()
})

test('a signature under another scheme does not count', () => {
  expect(faultOf(`t=${seconds},v0=${sign(seconds)}`)).toContain('malformed')
})

const good = sign(seconds)
test.each([
  ['nothing', undefined],
  ['two headers', [`t=${seconds},v1=${good}`]],
  ['an empty text', ''],
  ['no time', `v1=${good}`],
  ['no signature', `t=${seconds}`],
  ['two times', `t=${seconds},t=${seconds - 1},v1=${good}`],
  ['a time that is no number', `t=now,v1=${sign('now')}`],
  ['a negative time', `t=-1,v1=${sign(-1)}`],
  ['a time in hexadecimal', `t=0x10,v1=${sign('0x10')}`],
  ['a time without end', `t=${'9'.repeat(400)},v1=${sign('9'.repeat(400))}`],
  ['a short signature', `t=${seconds},v1=${good.slice(0, 32)}`],
  ['a signature that is no hexadecimal', `t=${seconds},v1=${'z'.repeat(64)}`],
  ['too many signatures', `t=${seconds}${`,v1=${good}`.repeat(11)}`],
  ['a header that is too long', `t=${seconds},v1=${good},v0=${'a'.repeat(2000)}`],
])('%s is refused as malformed', (_, header) => {
  expect(faultOf(header)).toContain('missing or malformed')
})
