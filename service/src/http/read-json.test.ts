import fc from 'fast-check'
import { expect, test } from 'vitest'

import { ApiError } from '#platform/api-error.ts'

import { readJson } from './read-json.ts'

const read = (text: string) => readJson(Buffer.from(text))

/** What a body is refused with; its text when it is accepted. */
function refusal(body: string | Buffer): string {
  try {
    return JSON.stringify(readJson(Buffer.from(body)))
  } catch (error) {
    expect(error).toBeInstanceOf(ApiError)
    expect(error).toMatchObject({ status: 400, code: 'invalid_json', param: null })
    return (error as ApiError).message
  }
}

const tooDeep = 'The body is nested deeper than 64 levels.'
const notJson = 'The body is not valid JSON.'
const nested = (depth: number, inside = '') => '['.repeat(depth) + inside + ']'.repeat(depth)
const objects = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`

test.each([
  ['64 arrays', nested(64)],
  ['64 objects', objects(64)],
  ['many shallow ones', `[${'[],{},'.repeat(500)}1]`],
  ['brackets in a string', JSON.stringify({ a: '['.repeat(100) + '{'.repeat(100) })],
  ['brackets in a name', JSON.stringify({ [`${'[{'.repeat(100)}`]: 1 })],
  ['brackets behind an escaped quote', JSON.stringify(`"${'['.repeat(100)}`)],
  ['brackets behind an escaped backslash', JSON.stringify(`\\"\\\\"${'['.repeat(100)}`)],
  ['64 arrays around a string with brackets', nested(64, JSON.stringify(']]]]'))],
])('%s are not too deep', (_, text) => {
  expect(read(text)).toEqual(JSON.parse(text))
})

test.each([
  ['65 arrays', nested(65)],
  ['65 objects', objects(65)],
  ['65 of both', `${'[{"a":'.repeat(33)}1${'}]'.repeat(33)}`],
  ['arrays behind a string that ends with a backslash', `["\\\\",${nested(64)}]`],
  ['closing brackets in a string, which close nothing', `["]]]",${nested(64)}]`],
  ['a million open brackets', '['.repeat(1_000_000)],
  ['65 arrays that are no JSON', `${nested(65)}x`],
])('%s are too deep', (_, text) => {
  expect(refusal(text)).toBe(tooDeep)
})

test.each([
  ['', notJson],
  [' ', notJson],
  ['{', notJson],
  ['{"a":1', notJson],
  ['"\\', notJson],
  ['"', notJson],
  ['{"a":1}{"b":2}', notJson],
  ["{'a':1}", notJson],
  ['{"a":1,}', notJson],
  ['{a:1}', notJson],
  ['NaN', notJson],
  ['[1 /* one */]', notJson],
  ['{"a\n":1}', notJson],
  [']]]]', notJson],
])('%j is not JSON', (text, message) => {
  expect(refusal(text)).toBe(message)
})

test.each([
  ['a lone continuation byte', [0x22, 0x80, 0x22]],
  ['an overlong quote', [0x22, 0xc0, 0xa2, 0x22]],
  ['half of a surrogate pair', [0x22, 0xed, 0xa0, 0x80, 0x22]],
  ['a character that is cut off', [0x22, 0xe2, 0x82]],
  ['beyond Unicode', [0x22, 0xf4, 0x90, 0x80, 0x80, 0x22]],
  ['UTF-16', [0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00]],
])('%s is not UTF-8', (_, bytes) => {
  expect(refusal(Buffer.from(bytes))).toBe('The body is not valid UTF-8.')
})

const twice = (name: string) => `The body has the member '${name}' more than once.`

test.each([
  ['{"a":1,"a":2}', 'a'],
  ['{"a":1,"\\u0061":2}', 'a'],
  ['{"\\u0061":1,"b":0,"a" \n:2}', 'a'],
  ['{"/":1,"\\/":2}', '/'],
  ['{"\\ud83d\\ude00":1,"😀":2}', '😀'],
  ['{"":1,"":2}', ''],
  ['{"a":{"b":1,"b":2}}', 'b'],
  ['[0,{"x":[{"b":1,"b":2}]}]', 'b'],
  ['{"a":{"c":1},"b":[{"d":2}],"a":3}', 'a'], // with other objects in between
  ['{"a":"}","a":1}', 'a'],
  ['{"a":":","a":1}', 'a'],
])('a member that is there twice is refused: %s', (text, name) => {
  expect(refusal(text)).toBe(twice(name))
})

test.each([
  '{"a":1,"A":2}',
  '{"a":{"a":{"a":1}}}',
  '[{"a":1},{"a":2}]',
  '{"x":{"a":1},"y":{"a":2},"a":3}',
  '{"a":"a","b":"a"}',
  '{"é":1,"e\\u0301":2}', // look alike, are not
  '["a","a"]',
  '{"prototype":1,"toString":2,"hasOwnProperty":3}',
  '{"a":"__proto__","b":["constructor"]}', // values may say anything
])('members that only look repeated are accepted: %s', (text) => {
  expect(read(text)).toEqual(JSON.parse(text))
})

const spellings = [
  ['__proto__', '"__proto__"'],
  ['__proto__', '"\\u005f_proto__"'],
  ['__proto__', '"__prot\\u006F__"'],
  ['__proto__', '"__proto__" \t\r\n'],
  ['constructor', '"constructor"'],
  ['constructor', '"\\u0063onstructor"'],
  ['constructor', '"constructo\\u0072"\t'],
] as const
const places = [
  (name: string) => `{${name}:1}`,
  (name: string) => `{"a":1,${name}:{"b":2}}`,
  (name: string) => `[[{"a":{"b":[{${name}:null}]}}]]`,
  (name: string) => `${'{"a":'.repeat(63)}{${name}:1}${'}'.repeat(63)}`,
]
const forbidden = spellings.flatMap(([name, text]) =>
  places.map((place) => [name, place(text)] as const),
)

test.each(forbidden)('%s is refused as a name, wherever and however: %s', (name, text) => {
  expect(refusal(text)).toBe(`The body has the member '${name}', which is not allowed.`)
})

test('a long name is cut, within the bounds of a message', () => {
  const name = 'n'.repeat(5000)
  expect(refusal(`{"${name}":1,"${name}":2}`)).toBe(twice('n'.repeat(80)))
})

test('a byte order mark is skipped', () => {
  expect(read('\ufeff{"a":1}')).toEqual({ a: 1 })
})

/** Any JSON that names nothing forbidden. */
const name = fc
  .string({ unit: fc.constantFrom('a', 'b', '"', '\\', '{', ']', ':', ' ', '\u0000', 'é', '😀') })
  .filter((text) => text !== '__proto__' && text !== 'constructor')
const json = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    fc.oneof(fc.string({ unit: 'binary' }), fc.double(), fc.boolean(), fc.constant(null), name),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(name, tie('value'), { maxKeys: 4, noNullPrototype: true }),
  ),
})).value

test('any other JSON is read exactly as JSON.parse reads it', () => {
  const indent = fc.constantFrom('', ' ', '\t', '\r\n')
  fc.assert(
    fc.property(json, indent, (value, spaces) => {
      const text = JSON.stringify(value, null, spaces)
      expect(read(text)).toStrictEqual(JSON.parse(text))
    }),
    { numRuns: 300 },
  )
})

test('a member added to any object once more is always found', () => {
  const members = fc.dictionary(name, json, { minKeys: 1, maxKeys: 4, noNullPrototype: true })
  fc.assert(
    fc.property(members, fc.nat(), fc.integer({ min: 0, max: 20 }), (object, index, depth) => {
      const names = Object.keys(object)
      const again = JSON.stringify(names[index % names.length])
      const body = `${JSON.stringify(object).slice(0, -1)},${again}:0}`
      expect(refusal(nested(depth, body))).toContain('more than once')
    }),
  )
})

test('any bytes are either parsed or refused with invalid_json', () => {
  const bytes = fc.array(fc.oneof(fc.constantFrom(...Buffer.from('{}[]",:\\u0 a1')), fc.nat(255)))
  fc.assert(
    fc.property(bytes, (values) => {
      expect(typeof refusal(Buffer.from(values))).toBe('string')
    }),
    { numRuns: 500 },
  )
})

test('a body of more values than any conversation has is refused before it is parsed', () => {
  const many = (count: number) => Buffer.from(`[${Array(count).fill('0').join()}]`)
  expect(readJson(many(100_000))).toHaveLength(100_000)
  expect(() => readJson(many(100_001))).toThrow('more than 100000 values')
  expect(readJson(Buffer.from(JSON.stringify(',[{'.repeat(500_000))))).toHaveLength(1_500_000)
})
