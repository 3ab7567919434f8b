import { createPublicKey, hash, verify } from 'node:crypto'

import { expect, test } from 'vitest'

import { hashNote, verifierKeyOf, writeNote } from './checkpoint-note.ts'
import { createSigningKey } from './signing-keys.ts'

// RFC 8032, 7.1, test 1.
const seed = Buffer.from('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60', 'hex')
const publicKey = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a'
const key = createSigningKey({ version: 7, bytes: seed })

const checkpoint = {
  organizationId: 'org_1',
  size: 4096,
  root: Buffer.alloc(32, 1),
  previousHash: null,
  at: new Date('2026-05-04T10:11:12.013Z'),
}

test('a signing key is derived from its seed as RFC 8032 says', () => {
  expect(key.publicKey.toString('hex')).toBe(publicKey)
})

test('a note says what is signed, by which key, and verifies with it', () => {
  const note = writeNote(checkpoint, key)
  const [text = '', line = ''] = note.split(/(?<=\n)\n/)
  expect(text).toBe(
    `gatehouse-audit/org_1\n4096\n${checkpoint.root.toString('base64')}\nprevious none\ntime 2026-05-04T10:11:12.013Z\n`,
  )
  const [dash, name, encoded = ''] = line.trimEnd().split(' ')
  expect([dash, name]).toEqual(['—', 'gatehouse-audit-7'])
  const bytes = Buffer.from(encoded, 'base64')
  const keyHash = hash(
    'sha256',
    Buffer.concat([Buffer.from('gatehouse-audit-7\n\u0001'), key.publicKey]),
    'buffer',
  )
  expect(bytes.subarray(0, 4)).toEqual(keyHash.subarray(0, 4))
  const der = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), key.publicKey])
  const verifier = createPublicKey({ key: der, format: 'der', type: 'spki' })
  expect(verify(null, Buffer.from(text), verifier, bytes.subarray(4))).toBe(true)
  expect(verify(null, Buffer.from(text.replace('4096', '4097')), verifier, bytes.subarray(4))).toBe(
    false,
  )
})

test('a note repeats the hash of the one before it', () => {
  const first = writeNote(checkpoint, key)
  const second = writeNote({ ...checkpoint, size: 5000, previousHash: hashNote(first) }, key)
  expect(second).toContain(`\nprevious ${hashNote(first).toString('base64')}\n`)
})

test('a public key is written as verifiers of signed notes take it', () => {
  const [name, keyHash = '', encoded = ''] = verifierKeyOf(key).split('+', 3)
  expect(name).toBe('gatehouse-audit-7')
  expect(keyHash).toMatch(/^[0-9a-f]{8}$/)
  expect(Buffer.from(encoded, 'base64').subarray(0, 3).toString('hex')).toBe('01d75a')
})
