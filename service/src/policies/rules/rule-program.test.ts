import { expect, test } from 'vitest'

import { loadPatternEngine } from '#text/pattern-engine.ts'

import { compileRule } from './rule-program.ts'

const engine = loadPatternEngine()
const compile = (rule: string) => compileRule(rule, engine)
const list = (length: number, element = '1') => `[${Array(length).fill(element).join(',')}]`

test.each([
  'cel: true',
  'cel: text.matches("(?i)\\\\bweapon\\\\b")',
  String.raw`cel: text.matches(r"\bweapon\b")`,
  'cel: last_message.contains("x") || system.containsAny(["a", "b"])',
  'cel: text.size() > 1000 && direction == "request"',
  'cel: model.startsWith("gpt-") && !(endpoint in ["messages", "responses"])',
  'cel: project_id == "proj_1" ? 7000 : 0',
  'cel: input_tokens * 2 - 1',
  'cel: double(input_tokens) / 1000.0',
  'cel: stream && role == "user"',
  'cel: categories.exists(c, c == "hate" || c.startsWith("sexual"))',
  'cel: [1, 2, 3].all(n, n < input_tokens)',
  'cel: size(categories) > 0 && categories[0] == "hate"',
  'cel: score("self-harm/intent") >= 0.5 || pii("CARD") > 0',
  'cel: model.lowerAscii().contains("claude") // and so on',
  `cel: text.containsAny(${list(200, '"x"')})`,
  `cel: ${Array(64).fill('text.matches("a")').join(' || ')}`,
  `cel: ${list(200)}.exists(n, n > 1)`,
  'when: text.contains("x")\nNo weapons.',
  'Be kind.',
])('%s is accepted', (rule) => {
  expect(compile(rule)).toBeTypeOf('object')
})

/** One row for each limit, and for each construct that could reach more than the text and the facts of the call. */
const refused: [string, string][] = [
  [`cel:${' '.repeat(3997)}true`, 'line 1, column 5: an expression has at most 4000 characters'],
  [`cel: ${'!'.repeat(3900)}true`, 'more than 400 parts'],
  [`cel: ${Array(250).fill('true').join('&&')}`, 'more than 400 parts'],
  [`cel: ${'('.repeat(25)}true${')'.repeat(25)}`, 'nested more than 24 deep'],
  [`cel: ${'('.repeat(3900)}`, 'nested more than 24 deep'],
  [`cel: ${'['.repeat(3900)}`, 'nested more than 24 deep'],
  [`cel: 1 in ${list(201)}`, 'a list has at most 200 elements'],
  [`cel: text.containsAny(${list(201, '"x"')})`, 'a list has at most 200 elements'],
  ['cel: size(1, 2, 3, 4, 5, 6, 7, 8, 9) == 1', 'at most 8 arguments'],
  ['cel: {"a": 1}.size() > 0', 'cannot contain a map'],
  ['cel: {} == {}', 'cannot contain a map'],
  // The type of the result.
  ['cel: "text"', 'the result must be true, false or a number, and is of type string'],
  ['cel: [true]', 'of type list<bool>'],
  ['cel: categories', 'of type list<string>'],
  ['cel: null', 'a value is a text in quotes, a number, true or false'],
  ['cel: b"a" == b"b"', 'a value is a text in quotes'],
  ['cel: 1u == 1u', 'a value is a text in quotes'],
  ['cel: 99999999999999999999 > 1', 'too large a number'],
  ['cel: 1 + true', 'no such overload: int + bool'],
  [
    'when: 5000\nNo weapons.',
    "line 1, column 7: the expression after 'when:' must be true or false",
  ],
  ['when: true', "needs plain language below its 'when:' line"],
  // Loops.
  ['cel: [1].all(a, [2].all(b, a < b))', "'all' cannot be used inside another loop"],
  ['cel: [[1].exists(a, a > 0)].exists(b, b)', "'exists' cannot be used inside another loop"],
  ['cel: categories.filter(c, true).exists(c, true)', "works on 'categories' and on lists"],
  ['cel: (categories + categories).exists(c, true)', "works on 'categories' and on lists"],
  ['cel: [1].map(a, a + 1).size() > 0', "'+' cannot be used inside a loop"],
  ['cel: [1, 1 + 1].exists(a, a > 1)', "'+' cannot be used inside a loop"],
  ['cel: [1].exists(text, true)', "'text' is the name of another variable"],
  ['cel: [1].exists(1, true)', 'invalid predicate iteration variable'],
  [`cel: ${list(150)}.exists(n, ${Array(5).fill('n > 1').join('||')})`, 'more than 2000 steps'],
  // Patterns.
  [`cel: ${Array(65).fill('text.matches("a")').join(' || ')}`, 'at most 64 patterns'],
  ['cel: text.matches(model)', "line 1, column 19: 'matches' needs a pattern written as a text"],
  ['cel: text.matches("a" + "b")', "'matches' needs a pattern written as a text in quotes"],
  ['cel: text.matches()', "'matches' needs a pattern written as a text in quotes"],
  ['cel: text.matches("a", "b")', "'matches' needs a pattern written as a text in quotes"],
  ['cel: text.matches(stream ? "a" : "b")', "'matches' needs a pattern written as a text"],
  [`cel: text.matches("${'a'.repeat(513)}")`, 'in the pattern, at its character '],
  ['cel: text.matches("(a)\\\\1")', 'in the pattern, at its character '],
  ['cel: text.matches("(?=a)b")', 'in the pattern, at its character '],
  ['cel: text.matches("(?<!a)b")', 'in the pattern, at its character '],
  ['cel: text.matches("(a{40}){40}")', 'in the pattern, at its character '],
  ['cel: text.matches("(")', 'in the pattern, at its character '],
  // What would run a pattern in V8.
  ['cel: model.matches("(a+)+$")', "'matches' works on 'text' and other texts of a call only"],
  ['cel: "aaaa".matches("(a+)+$")', "'matches' works on 'text'"],
  ['cel: dyn(text).matches("a")', "'matches' works on 'text'"],
  ['cel: categories.exists(c, c.matches("(a+)+$"))', "'matches' works on 'text'"],
  ['cel: [text].exists(t, t.matches("a"))', "'text' can only be used with .matches()"],
  // Literals.
  ['cel: text.contains(model)', "'contains' needs a text in quotes"],
  ['cel: text.contains("")', 'a text to look for must not be empty'],
  ['cel: text.contains("\u200b")', 'a text to look for must not be empty'],
  ['cel: text.containsAny([])', "'containsAny' needs a list of texts in quotes, at least one"],
  ['cel: text.containsAny(categories)', "'containsAny' needs a list of texts in quotes"],
  ['cel: text.containsAny(["a", model])', "'containsAny' needs a list of texts in quotes"],
  ['cel: text.containsAny(["a", ""])', 'a text to look for must not be empty'],
  [`cel: text.contains("${'a'.repeat(1001)}")`, 'at most 1000 characters'],
  [`cel: text.contains("${'\ufdfa'.repeat(100)}")`, 'at most 1000 characters'], // 18 characters each
  [`cel: model == "${'a'.repeat(257)}"`, 'at most 256 characters here'],
  ['cel: model.contains(model + "x")', "'contains' needs a text in quotes or a variable"],
  // What is not on the lists.
  ['cel: text', "'text' can only be used with"],
  ['cel: text == text', "'text' can only be used with"],
  ['cel: size(text) > 3', "'text' can only be used with"],
  ['cel: text.size(1) > 3', "'size' needs nothing in its brackets"],
  ['cel: text.constructor', "there is no member 'constructor'"],
  ['cel: text.__proto__ == 1', "there is no member '__proto__'"],
  ['cel: text["constructor"] == 1', 'only a list has elements'],
  ['cel: text[model] == 1', 'only a list has elements'],
  ['cel: has(text.x)', "there is no function 'has'"],
  ['cel: text.replace("a")', "a text has no method 'replace'"],
  ['cel: cel.bind(x, 1, x > 0)', "there is no method 'bind'"],
  ['cel: dyn(1) == 1', "there is no function 'dyn'"],
  ['cel: type(1) == int', "there is no function 'type'"],
  ['cel: int == int', "there is no variable 'int'"],
  ['cel: google == google', "there is no variable 'google'"],
  ['cel: optional.none()', "there is no method 'none'"],
  ['cel: timestamp("2026-01-01T00:00:00Z").getDate() > 1', "there is no method 'getDate'"],
  ['cel: "a,b".split(",").size() > 1', "there is no method 'split'"],
  ['cel: categories.join(",") == ""', "there is no method 'join'"],
  ['cel: nobody == 1', "line 1, column 6: there is no variable 'nobody'"],
  ['cel: eval("1")', "there is no function 'eval'"],
  ['cel: score("violence") > 0.5', '\'score\' needs one of "harassment"'],
  ['cel: score(model) > 0.5', "'score' needs one of"],
  ['cel: score() > 0.5', "'score' needs one of"],
  ['cel: score("self-harm/") > 0.5', "'score' needs one of"],
  ['cel: pii("card") > 0', '\'pii\' needs one of "EMAIL"'],
  // Syntax.
  ['cel: "a', 'line 1, column 6: unterminated string'],
  ['cel: true &&', 'line 1, column 13: unexpected token'],
  ['cel: true true', 'unexpected character'],
  ['\n\n  cel: true\n  && ?', 'line 4, column 6: unexpected token'],
  ['cel: a ? b', 'expected COLON'],
  ['cel: 1e999 > 1.0', 'invalid number'],
]

test.each(refused)('%.100s is refused: %s', (rule, problem) => {
  const complaint = compile(rule)
  expect(complaint).toBeTypeOf('string')
  expect(complaint).toContain(problem)
})

test('a complaint is short enough for an error, however long the text that it quotes', () => {
  for (const [rule] of [...refused, [`cel: ${'x'.repeat(3900)} > 1`]] as const) {
    const complaint = compile(rule)
    if (typeof complaint !== 'string') throw new Error(`${rule} is accepted`)
    expect(complaint.length).toBeLessThan(280)
    expect(complaint).not.toContain('\n')
  }
})
