import { createLocalJWKSet, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import { expect, test } from 'vitest'

import { verifyLogoutToken } from './verify-logout-token.ts'

const now = new Date('2026-06-01T12:00:00Z')
const seconds = now.getTime() / 1000
const { publicKey, privateKey } = await generateKeyPair('RS256')
const other = await generateKeyPair('RS256')
const keys = createLocalJWKSet({ keys: [{ ...(await exportJWK(publicKey)), alg: 'RS256' }] })
const expected = { issuer: 'https://login.example.com', clientId: 'gatehouse', keys, now }

const logout: JWTPayload = {
  iss: expected.issuer,
  aud: 'gatehouse',
  iat: seconds,
  exp: seconds + 120,
  jti: 'one',
  sub: 'ada',
  sid: 'session',
  events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
}
const sign = (changes: object, header = {}, key = privateKey) =>
  new SignJWT(JSON.parse(JSON.stringify({ ...logout, ...changes })) as JWTPayload)
    .setProtectedHeader({ alg: 'RS256', typ: 'logout+jwt', ...header })
    .sign(key)
const verify = async (...[changes, header, key]: Parameters<typeof sign>) =>
  verifyLogoutToken(await sign(changes, header, key), expected)

test('a logout token says whose sessions have ended', async () => {
  expect(await verify({})).toEqual({ jti: 'one', subject: 'ada', providerSession: 'session' })
  expect(await verify({ sid: undefined })).toMatchObject({ subject: 'ada', providerSession: null })
  expect(await verify({ sub: undefined }, { typ: 'JWT' })).toMatchObject({ subject: null })
  expect(await verify({ iat: seconds + 59 })).toBeDefined()
})

test.each([
  ['another issuer', { iss: 'https://login.example.org' }],
  ['another client', { aud: 'another' }],
  ['no time', { iat: undefined }],
  ['a time long ago', { iat: seconds - 3600, exp: seconds + 60 }],
  ['a time ahead', { iat: seconds + 120 }],
  ['an end that is over', { exp: seconds - 120 }],
  ['no id', { jti: undefined }],
  ['no event', { events: undefined }],
  ['another event', { events: { 'https://example.com/other': {} } }],
  ['a nonce, as tokens of sign-ins have', { nonce: 'n' }],
  ['no account and no session', { sub: undefined, sid: undefined }],
])('a token with %s is refused', async (_, changes) => {
  expect(await verify(changes)).toBeUndefined()
})

test('a token of another kind, of another key, and one that is not signed, are refused', async () => {
  expect(await verify({}, { typ: 'at+jwt' })).toBeUndefined()
  expect(await verify({}, {}, other.privateKey)).toBeUndefined()
  const [, payload] = (await sign({})).split('.')
  const none = Buffer.from('{"alg":"none"}').toString('base64url')
  expect(await verifyLogoutToken(`${none}.${payload}.`, expected)).toBeUndefined()
  expect(await verifyLogoutToken('', expected)).toBeUndefined()
})
