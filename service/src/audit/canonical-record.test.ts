import fc from 'fast-check'
import { expect, test } from 'vitest'

import { writeCanonical } from './canonical-json.ts'
import { writeCanonicalRecord } from './canonical-record.ts'

test('members are in the order of their UTF-16 code units (RFC 8785, 3.2.3)', () => {
  const members = {
    '\u20ac': 'Euro Sign',
    '\r': 'Carriage Return',
    '\ufb33': 'Hebrew Letter Dalet With Dagesh',
    '1': 'One',
    '\ud83d\ude00': 'Emoji: Grinning Face',
    '\u0080': 'Control',
    '\u00f6': 'Latin Small Letter O With Diaeresis',
  }
  expect(Object.values(JSON.parse(writeCanonical(members)) as object)).toHaveLength(7)
  const order = [...writeCanonical(members).matchAll(/:"(.*?)"/g)].map(([, name]) => name)
  expect(order).toEqual([
    'Carriage Return',
    'One',
    'Control',
    'Latin Small Letter O With Diaeresis',
    'Euro Sign',
    'Emoji: Grinning Face',
    'Hebrew Letter Dalet With Dagesh',
  ])
})

test('texts, numbers and constants are written as the RFC’s example has them (3.2.2)', () => {
  const example = {
    numbers: [333_333_333.333_333_3, 1e30, 4.5, 2e-3, 0.000_000_000_000_000_000_000_000_001],
    string: '\u20ac$\u000f\u000aA\'\u0042\u0022\u005c\\"/',
    literals: [null, true, false],
  }
  expect(writeCanonical(example as never)).toBe(
    String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
  )
})

test.each([
  [0, '0'],
  [-0, '0'],
  [5e-324, '5e-324'],
  [1.7976931348623157e308, '1.7976931348623157e+308'],
  [9007199254740992, '9007199254740992'],
  [-9007199254740992, '-9007199254740992'],
  [295147905179352830000, '295147905179352830000'],
  [1e21, '1e+21'],
  [9.999999999999997e22, '9.999999999999997e+22'],
  [333333333.33333325, '333333333.33333325'],
  [-0.0000033333333333333333, '-0.0000033333333333333333'],
])('the number %d is written %s (RFC 8785, appendix B)', (number, text) => {
  expect(writeCanonical(number)).toBe(text)
})

test.each([NaN, Infinity, 'half \ud83d'])('%j is refused: JSON cannot say it', (value) => {
  expect(() => writeCanonical(value)).toThrow('cannot contain')
  expect(() => writeCanonical({ [String(value)]: value })).toThrow('cannot contain')
})

test('a record has the header and what every event has, in one order', () => {
  const event = {
    id: '0197a3b2-0000-7000-8000-000000000000',
    kind: 'enforcement' as const,
    organizationId: 'org_1',
    at: new Date('2026-05-04T10:11:12.013Z'),
    payloadHash: Buffer.alloc(32, 0xab),
    header: {
      request_id: 'req_1',
      enforced: false,
      version: null,
      matches: [{ version: 3, policy_id: 'pol_1' }],
      policies_unevaluated: ['pol_2'],
    },
  }
  expect(writeCanonicalRecord(event, 7)).toBe(
    `{"created_at":"2026-05-04T10:11:12.013Z","enforced":false,"event_id":"${event.id}","event_type":"enforcement",` +
      `"matches":[{"policy_id":"pol_1","version":3}],"org_id":"org_1","org_seq":7,"payload_hash":"${'ab'.repeat(32)}",` +
      `"policies_unevaluated":["pol_2"],"request_id":"req_1","version":null}`,
  )
})

test('the order in which members were set does not matter, and nothing is lost', () => {
  const text = fc.string({ unit: 'grapheme' })
  const value = fc.oneof(text, fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean())
  const entries = fc.uniqueArray(fc.tuple(text, value), { selector: ([name]) => name })
  fc.assert(
    fc.property(entries, (members) => {
      const written = writeCanonical(Object.fromEntries(members))
      expect(writeCanonical(Object.fromEntries(members.toReversed()))).toBe(written)
      const entriesRead = Object.entries(JSON.parse(written) as object)
      expect(new Map(entriesRead)).toEqual(
        new Map(members.map(([name, each]) => [name, each === 0 ? 0 : each])),
      )
    }),
  )
})
