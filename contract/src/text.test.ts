import fc from 'fast-check'
import { expect, test } from 'vitest'

import { AnyId, codePoints, idOf, Timestamp, trimmedText } from './text.ts'

const name = trimmedText(1, 5)
const accepts = (value: unknown) => name.safeParse(value).success

test.each([
  ['a', 'a'],
  ['  a b \n', 'a b'],
  ['\u3000 a\u00a0', 'a'], // white space of other scripts is trimmed too
  ['12345', '12345'],
  ['     12345     ', '12345'], // counted after trimming
  ['😀😀😀😀😀', '😀😀😀😀😀'], // five code points, ten UTF-16 units
  ['e\u0301e\u0301e', 'e\u0301e\u0301e'], // kept as sent, not normalized
])('%j becomes %j', (sent, kept) => {
  expect(name.parse(sent)).toBe(kept)
})

test.each([
  [''],
  ['   '],
  ['123456'],
  ['😀😀😀😀😀😀'],
  ['1234😀6'],
  ['e\u0301e\u0301e\u0301'],
  ['a\0b'],
  ['\ud83d'],
  ['a\ude00b'],
  ['\ude00\ud83d'],
  [7],
  [null],
  [undefined],
  [['a']],
])('%j is refused', (value) => {
  expect(accepts(value)).toBe(false)
})

test('exactly the storable texts within the bounds are accepted', () => {
  const character = fc.constantFrom('a', ' ', '😀', '\ud83d', '\ude00', '\0', 'é')
  fc.assert(
    fc.property(fc.array(character, { maxLength: 12 }), (characters) => {
      const trimmed = characters.join('').trim()
      const { length } = trimmed.replaceAll(/./gsu, 'x')
      const isStorable = trimmed === trimmed.toWellFormed() && !trimmed.includes('\0')
      expect(accepts(characters.join(''))).toBe(length >= 1 && length <= 5 && isStorable)
    }),
  )
})

test.each([['x'.repeat(6)], ['x'.repeat(100)], ['😀'.repeat(6)], ['😀'.repeat(100)]])(
  'the refusal of a text that is too long names the bound in characters',
  (text) => {
    expect(name.safeParse(text).error?.issues[0]?.message).toBe('must be at most 5 characters long')
  },
)

test('a code point counts once, however it is stored', () => {
  expect(['', 'ab', '😀', '👨‍👩‍👧', '\ud83d'].map(codePoints)).toEqual([0, 2, 1, 5, 1])
})

test.each([
  ['x', true],
  ['x'.repeat(200), true],
  ['../../x y%00', true], // an id that names nothing is looked up and not found
  ['', false],
  ['x'.repeat(201), false],
  ['x\0', false],
  ['\ud800', false],
])('as an id of a caller, %j is accepted: %s', (value, isAccepted) => {
  expect(AnyId.safeParse(value).success).toBe(isAccepted)
})

test.each([
  ['proj_0123456789abcdefghjkmnpq', true],
  ['proj_rstvwxyz0000000000000000', true],
  ['proj_0123456789abcdefghjkmnp', false],
  ['proj_0123456789abcdefghjkmnpqr', false],
  ['proj_0123456789ABCDEFGHJKMNPQ', false],
  ['key_0123456789abcdefghjkmnpq', false],
  ['proj_0123456789abcdefghjkmnpq\n', false],
  ['proj_iiiiiiiiiiiiiiiiiiiiiiii', false],
  ['proj_0123456789abcdefghjkmnpl', false],
  ['proj_0123456789abcdefghjkmnpo', false],
  ['proj_0123456789abcdefghjkmnpu', false],
])('as an id of ours, %j is accepted: %s', (value, isAccepted) => {
  expect(idOf('proj').safeParse(value).success).toBe(isAccepted)
})

test.each([[-1], [1.5], ['1'], [Infinity], [2 ** 60]])('%j is not a time', (value) => {
  expect(Timestamp.safeParse(value).success).toBe(false)
})
