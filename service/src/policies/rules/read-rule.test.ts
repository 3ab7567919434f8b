import fc from 'fast-check'
import { expect, test } from 'vitest'

import { findFormProblem, readRule } from './read-rule.ts'

const problemOf = (text: string) => findFormProblem(readRule(text))

test.each([
  ['Never name a weapon.', 'plain', '', 'Never name a weapon.'],
  ['  indented', 'plain', '', 'indented'],
  ['cel:true', 'expression', 'true', ''],
  ['cel: size(text) > 3\n && true', 'expression', ' size(text) > 3\n && true', ''],
  [' \n\t\u3000cel:true', 'expression', 'true', ''], // the first characters that are not blank decide
  ['when:text\nNo weapons.', 'gated', 'text', 'No weapons.'],
  ['\n\nwhen: text \n\nNo\nweapons.', 'gated', ' text ', '\nNo\nweapons.'],
  ['when: text\r\nNo weapons.', 'gated', ' text\r', 'No weapons.'],
  ['when: text', 'gated', ' text', ''],
  ['CEL: true', 'plain', '', 'CEL: true'],
  ['When: true\nx', 'plain', '', 'When: true\nx'],
  ['cel : true', 'plain', '', 'cel : true'],
  ['when\n:x', 'plain', '', 'when\n:x'],
  ['celebrate', 'plain', '', 'celebrate'],
  ['Say cel: or when: as you like', 'plain', '', 'Say cel: or when: as you like'],
  ['', 'plain', '', ''],
])('%j is %s', (text, form, exact, plain) => {
  expect(readRule(text)).toMatchObject({ form, exact, plain })
})

test.each([
  'x',
  ' x ',
  'cel:x',
  'cel:\n\nx',
  'when:x\ny',
  'when: x\r\ny',
  'when: x\n\n\n  y',
  'when',
  'cel',
  '💥',
])('%j can be accepted', (text) => {
  expect(problemOf(text)).toBeNull()
})

const [noText, noExpression, noGate] = [
  "needs plain language below its 'when:' line",
  "needs an expression after 'cel:'",
  "needs an expression after 'when:', on the first line",
]

test.each([
  [' ', 'must not be blank'],
  [' \r\n\t\v\f\u00a0\u3000\u2028\ufeff', 'must not be blank'],
  ['cel:', noExpression],
  [' cel: \n\t', noExpression],
  ['when:', noGate],
  ['when:\nNo weapons.', noGate],
  ['when: \t\r\nNo weapons.', noGate],
  ['when:x', noText],
  ['when:x\n', noText],
  ['when:x\r\n \n\t', noText],
])('%j %s', (text, problem) => {
  expect(problemOf(text)).toBe(problem)
})

test('no text is misread: what was read is the end of it, and blank text in front changes nothing', () => {
  const piece = fc.constantFrom('cel:', 'when:', '\n', ' ', '\u3000', 'x', '💥', '\ud83d', '\r')
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
      const text = pieces.join('')
      const rule = readRule(text)
      const kept = rule.form === 'gated' && text.includes('\n', text.indexOf('when:'))
      expect(text.endsWith(kept ? `${rule.exact}\n${rule.plain}` : rule.exact + rule.plain)).toBe(
        true,
      )
      expect(text.slice(rule.exactOffset).startsWith(rule.exact)).toBe(true)
      const { exactOffset } = rule
      expect(readRule(` \n${text}`)).toEqual({
        ...rule,
        exactOffset: rule.form === 'plain' ? 0 : exactOffset + 2,
      })
      expect(problemOf(` \n${text}`)).toBe(problemOf(text))
    }),
  )
})
