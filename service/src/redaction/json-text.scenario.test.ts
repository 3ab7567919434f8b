import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { finish } from '#platform/steps/steps.ts'
import { decodeEscapes } from '#text/escape-decoder.ts'

import { entityHold } from './entity.ts'
import { createPlaceholders } from './placeholders.ts'
import { harmless, planted } from './testing/corpus.ts'
import { redactText, TextRedactor } from './text-redactor.ts'

// JSON as text: structured answers, results of tools, arguments.

const seed = Number(process.env['REDACTION_SEED'] ?? Date.now() % 2 ** 31)
const redact = (text: string) => finish(redactText(text, createPlaceholders()))
const raw = String.raw

describe('a value is found behind an escape, and the escape stays whole', () => {
  test.each([
    ['EMAIL', 'john.doe@example.com'],
    ['CARD', '4111 1111 1111 1111'],
    ['SSN', '123-45-6789'],
    ['IBAN', 'DE89370400440532013000'],
    ['IP', '203.0.113.7'],
    ['SECRET', ['AKIA', 'IOSFODNN7EXAMPLE'].join('')],
    ['PHONE', '+49 30 901820'],
  ])('%s', (kind, value) => {
    for (const before of ['\n', '\t', '"', '\\', '\b', '/', '\u0001', '\r\n']) {
      // Invisible characters after a value leave with it.
      const after = ['\b', '\u0001'].includes(before) ? '.' : before
      const text = JSON.stringify({ note: `Contact:${before}${value}${after}` })
      expect(redact(text)).toBe(text.replace(JSON.stringify(value).slice(1, -1), `[${kind}_1]`))
      const nested = JSON.stringify({ text })
      expect(JSON.parse(redact(nested))).toEqual({ text: redact(text) })
    }
  })

  test.each([
    [raw`{"to":"jane\u0040example.com"}`, '{"to":"[EMAIL_1]"}'],
    [raw`{"to":"\u006aane@example.com"}`, '{"to":"[EMAIL_1]"}'],
    [raw`say \nbar@example.com`, raw`say \n[EMAIL_1]`],
    [raw`to jane@example.co\u006d, jane@example.com`, 'to [EMAIL_1], [EMAIL_1]'],
    [
      raw`{"a":"card 4111\u00a01111\u20101111 1111"}`,
      raw`{"a":"card 4111\u00a01111\u20101111 1111"}`,
    ],
    [raw`{"a":"card 4111\u00a01111\u00a01111\u00a01111."}`, '{"a":"card [CARD_1]."}'],
    [raw`{"c":"password=\"hunter22!\""}`, raw`{"c":"password=\"[SECRET_1]\""}`],
    [raw`"a\u005c\u006ejohn@example.com"`, raw`"a\u005c\u006e[EMAIL_1]"`],
    [raw`"a\u005cn4111 1111 1111 1111\u005cn"`, raw`"a\u005cn[CARD_1]\u005cn"`],
    [raw`"jane\u005cu0040example.com"`, '"[EMAIL_1]"'],
    [raw`\\\\server\4111 1111 1111 1111`, raw`\\\\server\[CARD_1]`],
  ])('%s', (text, redacted) => {
    expect(redact(text)).toBe(redacted)
  })

  test('a key whose lines end in escapes ends before the quote that is escaped', () => {
    const key = `${'-----BEGIN PRIVATE'} KEY-----\nMIIE\nMIIF=\n${'-----END PRIVATE'} KEY-----\n`
    const cut = key.slice(0, -30)
    const inner = JSON.stringify({ key, cut, other: 1 })
    for (const text of [inner, JSON.stringify({ inner })]) {
      expect(() => void JSON.parse(redact(text))).not.toThrow()
      expect(redact(text)).not.toContain('MII')
    }
    expect(JSON.parse(redact(inner))).toEqual({ key: '[SECRET_1]\n', cut: '[SECRET_2]', other: 1 })
  })

  test('a value that both readings find is replaced and counted once', () => {
    const placeholders = createPlaceholders()
    expect(finish(redactText(raw`\n jane@a.com and jane\u0040a.com`, placeholders))).toBe(
      raw`\n [EMAIL_1] and [EMAIL_1]`,
    )
    expect([...placeholders.counts]).toEqual([['EMAIL', 2]])
  })
})

describe('a number of JSON becomes a string', () => {
  test.each([
    ['{"card":4111111111111111}', '{"card":"[CARD_1]"}'],
    ['[ 4111111111111111 , 4111111111111111\n]', '[ "[CARD_1]" , "[CARD_1]"\n]'],
    ['\n {"a":-4111111111111111,"b":4111111111111111.50}', '\n {"a":"[CARD_1]","b":"[CARD_1]"}'],
    ['{"a":"4111111111111111","b":[4111111111111111]}', '{"a":"[CARD_1]","b":["[CARD_1]"]}'],
    ['{"a":1}\n{"a":4111111111111111}', '{"a":1}\n{"a":"[CARD_1]"}'],
    ['{"a":[ -4111111111111111 \n ]}', '{"a":[ "[CARD_1]" \n ]}'],
    // JSON in other texts, and in its own strings.
    ['It is {"a": 4111111111111111}', 'It is {"a": "[CARD_1]"}'],
    ['```json\n{"a":-4111111111111111.5 ,\n"b":1}```', '```json\n{"a":"[CARD_1]" ,\n"b":1}```'],
    [raw`{"b":"{\"a\":4111111111111111}"}`, raw`{"b":"{\"a\":\"[CARD_1]\"}"}`],
    [raw`"{\\\"a\\\":\\n4111111111111111\\n,"`, raw`"{\\\"a\\\":\\n\\\"[CARD_1]\\\"\\n,"`],
    [
      raw`#x "\u0022a\u0022\u003a${raw`\u0034`}111111111111111\u007d"`,
      raw`#x "\u0022a\u0022\u003a\u0022[CARD_1]\u0022\u007d"`,
    ],
    ['"my card": 4111111111111111 is', '"my card": [CARD_1] is'],
    // These are no JSON.
    ['card: 4111111111111111, or', 'card: [CARD_1], or'],
    ['call 212-555-0123, or', 'call [PHONE_1], or'],
    ['[note] card: 4111111111111111, thanks', '[note] card: [CARD_1], thanks'],
    ['[4111111111111111 is my card]', '[[CARD_1] is my card]'],
    ['{"a": 4111111111111111', '{"a": [CARD_1]'],
    ['{a: 4111111111111111}', '{a: [CARD_1]}'],
  ])('%j', (text, redacted) => {
    for (let length = 1; length <= text.length; length++)
      expect(inPieces(text, [length])).toBe(redacted)
  })
})

function inPieces(text: string, lengths: readonly number[]): string {
  const redactor = new TextRedactor(createPlaceholders())
  let output = ''
  for (let at = 0, index = 0; at < text.length; index++) {
    const length = lengths[index % lengths.length]!
    output += redactor.push(text.slice(at, at + length))
    at += length
    const held = text.slice(text.length - redactor.held)
    if (at >= text.length && !/[\p{M}\p{Cf}\s]/u.test(text)) {
      expect(finish(decodeEscapes(held)).length).toBeLessThanOrEqual(entityHold + 2)
    }
  }
  return output + redactor.end()
}

const words = [...planted.map(([text]) => text), ...harmless]
const someString = fc
  .array(fc.constantFrom(...words, '\n', '\t', '"', '\\', ' ', ', ', '/', '\u0007', '😀'), {
    maxLength: 6,
  })
  .map((parts) => parts.join(' '))
const { value: someValue } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    someString,
    fc.constantFrom(4111111111111111, 5500000000000004, 7, -378282246310005, true, null),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(someString, tie('value'), { maxKeys: 3 }),
  ),
}))

/** Writes some characters of strings as escapes. */
const escapeSome = (json: string, every: number) =>
  json.replaceAll(/"(?:[^"\\]|\\.)*"/g, (string) =>
    string.replaceAll(/\\u[\da-f]{4}|\\.|[@.\d]/g, (token, at: number) =>
      token.length > 1 || at % every > 0
        ? token
        : raw`\u${token.charCodeAt(0).toString(16).padStart(4, '0')}`,
    ),
  )

const shapeOf = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(shapeOf)
  if (typeof value !== 'object' || value === null) return null
  return Object.values(value).map(shapeOf)
}

test(
  'JSON stays JSON of the same shape, in any pieces, and has nothing left',
  { timeout: 120_000 },
  () => {
    let changed = 0
    fc.assert(
      fc.property(
        fc.oneof(fc.array(someValue, { maxLength: 3 }), fc.dictionary(someString, someValue)),
        fc.nat(2),
        fc.integer({ min: 1, max: 7 }),
        fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1 }),
        (value, indent, every, lengths) => {
          const plain = JSON.stringify(value, null, indent)
          const escaped = escapeSome(plain, every)
          for (const text of [plain, escaped, JSON.stringify({ inner: plain })]) {
            const redacted = redact(text)
            expect(inPieces(text, lengths)).toBe(redacted)
            if (redacted !== text) changed++
            const before: unknown = JSON.parse(text)
            const after: unknown = JSON.parse(redacted)
            // Names of members that were different may be the same.
            if (!/"[^"]*"\s*:/.test(text)) expect(shapeOf(after)).toEqual(shapeOf(before))
            for (const [planting] of planted.slice(0, 12)) expect(redacted).not.toContain(planting)
          }
        },
      ),
      { numRuns: 400, seed },
    )
    console.log(`redacted JSON: ${changed} from seed ${seed}`)
    expect(changed).toBeGreaterThan(200)
  },
)
