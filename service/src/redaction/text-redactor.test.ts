import { sizeOf } from '@gatehouse/tools/testing/size-of'
import fc from 'fast-check'
import { expect, test } from 'vitest'

import { finish } from '#platform/steps/steps.ts'

import { entityHold } from './entity.ts'
import { createPlaceholders } from './placeholders.ts'
import { harmless, hostileUnits, planted } from './testing/corpus.ts'
import { redactText, TextRedactor } from './text-redactor.ts'

const redact = (text: string) => finish(redactText(text, createPlaceholders()))

test('the same value has the same placeholder, however it is written', () => {
  const placeholders = createPlaceholders()
  const text = 'jane@a.com, joe@a.com, Jane@A.com; 4111 1111 1111 1111 or 4111111111111111'
  expect(finish(redactText(text, placeholders))).toBe(
    '[EMAIL_1], [EMAIL_2], [EMAIL_1]; [CARD_1] or [CARD_1]',
  )
  expect(finish(redactText('joe@a.com and eve@a.com', placeholders))).toBe(
    '[EMAIL_2] and [EMAIL_3]',
  )
  expect([...placeholders.counts]).toEqual([
    ['EMAIL', 5],
    ['CARD', 2],
  ])
})

test('keys that begin alike have placeholders of their own', () => {
  const key = (body: string) =>
    `${'-----BEGIN PRIVATE'} KEY-----${body}${'-----END PRIVATE'} KEY-----`
  expect(redact(`${key('MIIA')} ${key('MIIB')} ${key('MIIA')}`)).toBe(
    '[SECRET_1] [SECRET_2] [SECRET_1]',
  )
})

test('the rest of a text stays as it is, with all that is not visible', () => {
  expect(redact('a\u200bb  ﬁ\njane\u200b＠example.com\u200b  e\u0301 😀')).toBe(
    'a\u200bb  ﬁ\n[EMAIL_1]  e\u0301 😀',
  )
  expect(redact('password = "hunter2-Str0ng!"')).toBe('password = "[SECRET_1]"')
})

test('a character that stands for several is replaced if any of them is', () => {
  // U+2100 is a/c in the normalised text.
  expect(redact('jane@example.co\u2100 x')).toBe('[EMAIL_1] x')
})

/** Pieces of entities, whole ones, and what hides them. */
const fragments = [
  ...planted.map(([text]) => text),
  ...harmless,
  ...Object.values(hostileUnits),
  '@',
  '.',
  ' ',
  '-',
  '+',
  '(',
  ':',
  '"',
  "'",
  '1',
  'a',
  '😀',
  '\ud83d',
  '\u200b',
  '\u0301',
  '4111',
  '1111',
  'jane',
  'example.com',
  'DE89',
  '-----END PRIVATE',
  ' KEY-----',
  '[EMAIL_1]',
  '\n',
  '  ',
  '\u2100',
  '１',
  'eyJ',
  'sk-',
  'password',
  '=',
  '2001:db8::',
  '10.0.0.',
  '\\',
  '\\n',
  '\\t',
  '\\"',
  '\\\\"',
  '\\u0040',
  '\\u00',
  'u0040',
  '\\u005c',
  '\\u006e',
  '\\\\n',
  '{"a":',
  '["',
  '4111111111111111',
  ', ',
  '}',
  ']',
  '\\n-----BEGIN PRIVATE',
]
const someText = fc
  .array(
    fc.oneof(
      fc.constantFrom(...fragments),
      fc
        .tuple(fc.constantFrom(...fragments), fc.nat(60), fc.nat(60))
        .map(([text, from, length]) =>
          text.slice(from % (text.length + 1), (from % (text.length + 1)) + length),
        ),
      fc
        .tuple(fc.constantFrom('a', 'A', '1', '-', '@', '.', ' ', '_'), fc.nat(700))
        .map(([unit, count]) => unit.repeat(count)),
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(''))

const runs = sizeOf({ usual: 3000, long: 200_000, variable: 'REDACTION_RUNS' })
const seed = Number(process.env['REDACTION_SEED'] ?? Date.now() % 2 ** 31)
const patience = { timeout: 60_000 + runs * 5 }

test('a text in any pieces becomes what the whole text becomes', patience, () => {
  let [texts, changed] = [0, 0]
  fc.assert(
    fc.property(
      someText,
      fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1 }),
      (text, cuts) => {
        const whole = redact(text)
        const redactor = new TextRedactor(createPlaceholders())
        let output = ''
        for (let at = 0, index = 0; at < text.length; index++) {
          const length = cuts[index % cuts.length]!
          output += redactor.push(text.slice(at, at + length))
          at += length
          // An invisible character waits with what it follows, and three may be one in the normalised text.
          // An escape is one character, however it is written.
          if (!/[\p{M}\p{Cf}\s\\]/u.test(text))
            expect(redactor.held).toBeLessThanOrEqual(entityHold + 2)
        }
        output += redactor.end()
        expect(output).toBe(whole)
        texts++
        if (whole !== text) changed++
      },
    ),
    { numRuns: runs, seed },
  )
  console.log(`redaction: ${texts} texts from seed ${seed}, ${changed} of them changed`)
  expect(Math.min(changed, texts - changed)).toBeGreaterThan(texts / 20)
})

// What stands right before an entity without anything in between may look like another when a placeholder follows it.
const someWords = fc
  .array(fc.tuple(fc.constantFrom(...fragments), fc.constantFrom(' ', ', ', '\n', '; ')))
  .map((words) => words.flat().join(''))

test('what was redacted stays as it is when it is redacted again', patience, () => {
  fc.assert(
    fc.property(someWords, (text) => {
      const once = redact(text)
      expect(redact(once)).toBe(once)
    }),
    { numRuns: runs, seed },
  )
})

test('nothing of the corpus is left in any pieces', () => {
  for (const [text] of planted) {
    for (let length = 1; length < 12; length++) {
      const redactor = new TextRedactor(createPlaceholders())
      let output = ''
      for (let at = 0; at < text.length; at += length)
        output += redactor.push(text.slice(at, at + length))
      output += redactor.end()
      expect(output).toBe(redact(text))
      expect(output).toMatch(/\[[A-Z]+_1\]/)
    }
  }
})
