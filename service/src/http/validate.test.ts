import { CreateMessage } from '@gatehouse/contract/message'
import { AdminKeyPermission } from '@gatehouse/contract/permission'
import { trimmedText } from '@gatehouse/contract/text'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { ApiError } from '#platform/api-error.ts'

import { explainIssue, type RequestPart, validate } from './validate.ts'

const Body = z.strictObject({
  name: trimmedText(1, 5).optional(),
  revision: z.int().min(1).max(9).optional(),
  direction: z.enum(['request', 'response']).optional(),
  ids: z.array(z.string().min(2).max(4)).min(1).max(3).optional(),
  rules: z.strictObject({ list: z.array(z.strictObject({ deny: z.boolean() })) }).optional(),
  isOn: z.literal(true).optional(),
  either: z.union([z.string(), z.strictObject({ a: z.int() })]).optional(),
  address: z.url().optional(),
})

function refusal(value: unknown, schema: z.ZodType = Body, part: RequestPart = 'body'): ApiError {
  try {
    validate(schema, part, value)
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
  throw new Error('accepted')
}

test.each([
  [{ name: '' }, 'body.name', 'must have at least 1 character'],
  [{ name: 'x'.repeat(6) }, 'body.name', 'must be at most 5 characters long'],
  [{ name: 'x'.repeat(900) }, 'body.name', 'must be at most 5 characters long'],
  [{ name: 'a\0' }, 'body.name', 'must be well-formed Unicode without NUL'],
  [{ name: 7 }, 'body.name', 'must be a string'],
  [{ name: null }, 'body.name', 'must be a string'],
  [{ revision: 0 }, 'body.revision', 'must be at least 1'],
  [{ revision: 10 }, 'body.revision', 'must be at most 9'],
  [{ revision: '1' }, 'body.revision', 'must be a number'],
  [{ revision: 1.5 }, 'body.revision', 'must be an integer'],
  [{ revision: Infinity }, 'body.revision', 'must be a number'], // 1e400
  [{ direction: 'up' }, 'body.direction', 'must be one of request, response'],
  [{ isOn: false }, 'body.isOn', 'must be one of true'],
  [{ ids: [] }, 'body.ids', 'must have at least 1 item'],
  [{ ids: ['ab', 'ab', 'ab', 'ab'] }, 'body.ids', 'must have at most 3 items'],
  [{ ids: ['ab', 'a'] }, 'body.ids[1]', 'must have at least 2 characters'],
  [{ ids: ['ab', 'abcde'] }, 'body.ids[1]', 'must have at most 4 characters'],
  [{ ids: 'ab' }, 'body.ids', 'must be an array'],
  [{ rules: { list: [{ deny: 1 }] } }, 'body.rules.list[0].deny', 'must be a boolean'],
  [{ either: 5 }, 'body.either', 'has a value that is not allowed'],
  [{ address: 'x' }, 'body.address', 'has the wrong format'],
  [[], 'body', 'must be an object'],
  ['text', 'body', 'must be an object'],
  [null, 'body', 'must be an object'],
  [undefined, 'body', 'must be an object'],
])('case %#: the message names the parameter and the rule', (value, param, rule) => {
  expect(refusal(value)).toMatchObject({
    status: 422,
    type: 'validation_error',
    code: 'invalid_parameter',
    param,
    message: `'${param}' ${rule}.`,
  })
})

test.each([
  [{ naem: 1 }, 'body.naem'],
  [{ a: 1, b: 2 }, 'body.a'],
  [{ rules: { list: [{ deny: true, allow: 1 }] } }, 'body.rules.list[0].allow'],
  [{ '': 1 }, 'body.'],
  [{ 'a.b[0]': 1 }, 'body.a.b[0]'],
])('an unknown member is named: %j', (value, param) => {
  expect(refusal(value)).toMatchObject({
    status: 422,
    code: 'unknown_field',
    param,
    message: `'${param}' is not a member of this request.`,
  })
})

const Needs = z.strictObject({
  name: z.string(),
  kind: z.enum(['a', 'b']),
  inner: z.strictObject({ ids: z.array(z.strictObject({ id: z.string() })) }),
})
const whole = { name: 'x', kind: 'a', inner: { ids: [] } }

test.each([
  [{ ...whole, name: undefined }, 'body.name'],
  [{ ...whole, kind: undefined }, 'body.kind'],
  [{ name: 'x', kind: 'a' }, 'body.inner'],
  [{ ...whole, inner: {} }, 'body.inner.ids'],
  [{ ...whole, inner: { ids: [{ id: 'a' }, {}] } }, 'body.inner.ids[1].id'],
])('case %#: a missing member is named', (value, param) => {
  expect(refusal(value, Needs)).toMatchObject({
    status: 422,
    code: 'missing_field',
    param,
    message: `'${param}' is required.`,
  })
})

test.each(['path', 'query', 'header', 'body'] as const)('the part %s comes first', (part) => {
  expect(refusal({ limit: 'x' }, z.object({ limit: z.int() }), part).param).toBe(`${part}.limit`)
})

test('a valid value is returned as the schema transforms it', () => {
  expect(validate(Body, 'body', { name: ' ab ', revision: 3 })).toEqual({ name: 'ab', revision: 3 })
})

test('a message is one bounded sentence, whatever names and values are sent', () => {
  const text = fc.string({ unit: fc.constantFrom('a', '.', '\ud83d', '😀'), maxLength: 400 })
  const value = fc.oneof(text, fc.double(), fc.constant(null), fc.array(text, { maxLength: 3 }))
  const known = fc.constantFrom('name', 'revision', 'direction', 'ids', 'rules', 'either', 'isOn')
  fc.assert(
    fc.property(fc.dictionary(fc.oneof(known, text), value, { minKeys: 1 }), (sent) => {
      fc.pre(!Body.safeParse(sent).success)
      const { message, param } = refusal(sent)
      expect(message).toMatch(/^'body.*' (must|is|has) [^.]{1,150}\.$/s)
      expect(message.length).toBeLessThanOrEqual(300)
      expect(param?.length).toBeLessThanOrEqual(120)
      expect(message.isWellFormed()).toBe(true)
      expect(param?.isWellFormed()).toBe(true)
    }),
  )
})

test('a very long name is cut', () => {
  const { message, param } = refusal({ ['n'.repeat(5000)]: 1 })
  expect(param).toBe(`body.${'n'.repeat(115)}`)
  expect(message).toBe(`'${param}' is not a member of this request.`)
})

test.each(['revision', 'direction', 'ids', 'rules', 'isOn', 'address'])(
  'an invalid value of %s is not repeated in the message',
  (name) => {
    expect(refusal({ [name]: 'gate_adm_canary' }).message).not.toContain('canary')
  },
)

test('even the longest list of allowed values fits the message', () => {
  const schema = z.strictObject({ permissions: z.array(AdminKeyPermission) })
  const { message } = refusal({ permissions: ['x'] }, schema)
  expect(message).toMatch(/ must be one of policies\.read, .*\.$/)
})

const explained = (schema: z.ZodType, value: unknown) => {
  const [issue] = schema.safeParse(value).error?.issues ?? []
  return issue && explainIssue(issue, value)
}
const saying = (content: unknown) => ({ model: 'm', messages: [{ role: 'user', content }] })
const text = { type: 'text', text: 'Hi' }

test.each([
  [[text, { type: 'video' }], '1.type', 'has a value that is not allowed'],
  [[text, {}], '1.type', 'is required'],
  [[{ ...text, text: 5 }], '0.text', 'must be a string'],
  [
    [{ type: 'tool_result', tool_use_id: 't', content: [text, { type: 'video' }] }],
    '0.content.1.type',
    'has a value that is not allowed',
  ],
])(
  'the issue of a union is that of the alternative that matches deepest: %j',
  (content, at, rule) => {
    const { path, ...rest } = explained(CreateMessage, saying(content))!
    expect(path.join('.')).toBe(`messages.0.content.${at}`)
    expect(rest).toEqual({ rule })
  },
)

test('a value of a wrong type gets the types of all alternatives of a union', () => {
  expect(explained(CreateMessage, saying(5))).toEqual({
    path: ['messages', 0, 'content'],
    rule: 'must be a string or array',
  })
  expect(explained(z.union([z.boolean(), z.enum(['a'])]), 5)?.rule).toBe('must be a boolean')
})
