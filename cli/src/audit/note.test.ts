import { hash } from 'node:crypto'

import { expect, test } from 'vitest'

import { createKey } from './keys.ts'
import { faultOfSignature, idOfNote, parseNote } from './note.ts'
import { createLog, createSigner } from './testing/signed-log.ts'

const signer = createSigner(3)
const log = createLog('org_a', [5, 9], [signer])
const [first = '', second = ''] = log.checkpoints.map((one) => String(one['note']))
const keys = new Map([[3, createKey(3, signer.publicKey)]])

test('a note says who, how many, which root, what was before, and when', () => {
  expect(parseNote(second)).toMatchObject({
    organizationId: 'org_a',
    size: 9,
    previous: hash('sha256', first, 'buffer'),
    time: '2026-01-01T00:00:09.000Z',
    keyId: 3,
  })
  expect(parseNote(first)?.previous).toBeNull()
})

test('its signature is that of the key', () => {
  const note = parseNote(second)!
  expect(faultOfSignature(note, keys)).toBeUndefined()
  expect(faultOfSignature(note, new Map())).toContain('not among the known keys')
  const other = new Map([[3, createKey(3, createSigner(3).publicKey)]])
  expect(faultOfSignature(note, other)).toContain('another key than the known')
  const changed = { ...note, signed: note.signed.replace('\n9\n', '\n8\n') }
  expect(faultOfSignature(changed, keys)).toContain('did not make')
})

test('the event id is a UUID of version 8 from the hash', () => {
  expect(idOfNote(second)).toBe(log.checkpoints[1]!['event_id'])
  expect(idOfNote(second)).toMatch(
    /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  )
})

test.each([
  ['a second signature', (note: string) => note + note.slice(note.indexOf('—'))],
  ['no line break at the end', (note: string) => note.slice(0, -1)],
  ['a size with a zero in front', (note: string) => note.replace('\n9\n', '\n09\n')],
  ['another dash', (note: string) => note.replace('—', '-')],
  ['a further line', (note: string) => note.replace('\ntime', '\nmore\ntime')],
  ['a carriage return', (note: string) => note.replace('\n', '\r\n')],
  // The last character before the padding has bits that no byte takes.
  [
    'base64 in another spelling',
    (note: string) =>
      note.replace(/.=\nprevious/, (end) => `${end.startsWith('B') ? 'C' : 'B'}${end.slice(1)}`),
  ],
])('%s is no note', (_, change) => {
  expect(change(second)).not.toBe(second)
  expect(parseNote(change(second))).toBeUndefined()
})
