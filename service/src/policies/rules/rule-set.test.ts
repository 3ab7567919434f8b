import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { finish } from '#platform/steps/steps.ts'
import { numbered, someAsker } from '#policies/guard/testing/rule-set-of.ts'
import { normalise } from '#text/normalise.ts'
import { loadPatternEngine, type PatternEngine } from '#text/pattern-engine.ts'

import type { AnswerFormula, AnswerRules } from './answer-rules.ts'
import type { CallFacts } from './facts.ts'
import { createPatternSearch } from './pattern-search.ts'
import { type CompiledRule, compileRule } from './rule-program.ts'
import { evaluateInSlices, RuleSet } from './rule-set.ts'
import { sliceLength as slice } from './searched-parts.ts'
import type { SetRule } from './set-rule.ts'

const engine = loadPatternEngine()
const call: CallFacts = {
  direction: 'request',
  model: 'claude-x',
  projectId: 'proj_1',
  endpoint: 'messages',
  role: 'user',
  isStreamed: true,
  inputTokens: 100,
  categories: ['hate'],
  userText: ['what users said'],
  lastMessage: ['the last message'],
  tools: ['a tool'],
  history: ['an earlier answer'],
  system: ['You are kind.'],
}

function ruleOf(text: string, more: Partial<SetRule> = {}): SetRule {
  const rule = compileRule(text, engine)
  if (typeof rule === 'string') throw new Error(`${text} ${rule}`)
  return {
    policyId: 'p',
    policyName: 'P',
    version: 1,
    mode: 'enforcing',
    threshold: 5000,
    rule,
    ...more,
  }
}
const setOf = (rules: readonly string[], more: Partial<SetRule> = {}) =>
  new RuleSet(
    rules.map((rule) => ruleOf(rule, more)),
    engine,
  )
const outcomeOf = (rule: string, texts: readonly string[], more: Partial<SetRule> = {}) =>
  setOf([rule], more).evaluate(call, texts)[0]
const matches = (rule: string, ...texts: string[]) => outcomeOf(rule, texts)?.isMatch

describe('what rules see', () => {
  test.each([
    ['text.matches("(?i)WEAPON")', ['no', 'a weapon'], true],
    ['text.matches("no.*weapon")', ['no', 'weapon'], false], // a match lies inside one segment
    ['text.matches("no") && text.matches("weapon")', ['no', 'weapon'], true],
    ['text.matches("^weapon$")', ['no', 'weapon'], true],
    ['text.contains("a b")', ['a \u200b\n\t b'], true],
    ['text.contains("a  b")', ['a b'], true], // literals are normalised like texts
    ['text.contains("ﬁre")', ['fire'], true],
    ['text.contains("fire")', ['ﬁre'], true],
    ['text.contains("Fire")', ['fire'], false],
    ['text.containsAny(["x", "ire"])', ['fire'], true],
    ['text.containsAny(["x", "y"])', ['fire'], false],
    ['text.size() == 5', ['a💥', '\ufb01b'], true], // ﬁ is two letters
    ['text.size() == 0', [], true],
    ['last_message.contains("last") && !text.contains("last")', ['x'], true],
    ['system.matches("kind") && system.size() == 13', ['x'], true],
    ['direction == "request" && model == "claude-x" && project_id == "proj_1"', [], true],
    ['endpoint == "messages" && role == "user" && stream && input_tokens == 100', [], true],
    ['categories.exists(c, c == "hate")', [], true],
    ['["a", "b"].exists(c, text.contains("x") && c == "b")', ['x'], true],
  ])('%s in %j: %s', (expression, texts, expected) => {
    expect(matches(`cel: ${expression}`, ...texts)).toBe(expected)
  })

  test('rules that share patterns and literals get their own answers', () => {
    const set = setOf([
      'cel: text.matches("a")',
      'cel: text.matches("b")',
      'cel: text.contains("a")',
      'cel: !text.matches("a")',
    ])
    expect(set.evaluate(call, ['xax']).map(({ isMatch }) => isMatch)).toEqual([
      true,
      false,
      true,
      false,
    ])
  })

  test('what `pii` asks for is counted in all segments, as it is normalised', () => {
    const texts = ['jane@example.com, joe@example.com', 'card ４１１１ 1111 1111 1111', 'eve@a']
    const isMatch = (expression: string) => outcomeOf(`cel: ${expression}`, texts)?.isMatch
    expect(isMatch('pii("EMAIL") == 2 && pii("CARD") == 1 && pii("SSN") == 0')).toBe(true)
    expect(isMatch('pii("EMAIL") > 2')).toBe(false)
    expect(isMatch('["a"].exists(it, it == "a" && pii("CARD") > 0)')).toBe(true)
    // Nothing is an entity that lies in two segments.
    expect(outcomeOf('cel: pii("EMAIL") > 0', ['jane@', 'example.com'])?.isMatch).toBe(false)
    expect(outcomeOf('cel: pii("SSN") * 4000', ['123-45-6789 123-45-6780'])?.score).toBe(8000)
  })

  test('rules that need a judge or scores are not evaluated', () => {
    const set = setOf(['Be kind.', 'when: true\nBe kind.', 'cel: score("hate") > 0.1', 'cel: true'])
    expect(numbered(set.evaluate(call, ['x']))).toEqual([
      { index: 3, score: 10_000, isMatch: true, isError: false },
    ])
  })
})

describe('scores', () => {
  test.each([
    ['true', 10_000],
    ['false', 0],
    ['4999', 4999],
    ['-1', 0],
    ['10001', 10_000],
    ['0.29', 2900],
    ['1.5', 10_000],
    ['-0.5', 0],
    ['1.0 / 0.0', 10_000],
    ['text.contains("x") ? 0.7 : 0.2', 7000],
    ['input_tokens * 10', 1000],
  ])('%s is %s', (expression, score) => {
    expect(outcomeOf(`cel: ${expression}`, ['x'])).toMatchObject({ score, isError: false })
  })

  test('a rule matches from its threshold on', () => {
    expect(outcomeOf('cel: 4999', [])?.isMatch).toBe(false)
    expect(outcomeOf('cel: 5000', [])?.isMatch).toBe(true)
    expect(outcomeOf('cel: 5000', [], { threshold: 5001 })?.isMatch).toBe(false)
  })

  test.each(['1 / 0', '1 / 0 == 1', 'categories[7] == "x"', '0.0 / 0.0', 'int(model) > 1'])(
    '%s is an error: a match where it is enforced, none where it is monitored',
    (expression) => {
      const [enforced, monitored] = (['enforcing', 'monitoring'] as const).map((mode) =>
        outcomeOf(`cel: ${expression}`, ['x'], { mode }),
      )
      expect(enforced).toMatchObject({ score: 10_000, isMatch: true, isError: true })
      expect(monitored).toMatchObject({ score: 0, isMatch: false, isError: true })
    },
  )

  test('a text of more than 4 MB is an error for rules that read it, and for no others', () => {
    const set = setOf(['cel: text.contains("x")', 'cel: stream'])
    const outcomes = set.evaluate(call, ['a'.repeat(3e6), 'b'.repeat(2e6)])
    expect(outcomes.map(({ isError }) => isError)).toEqual([true, false])
  })
})

/** The truth of a formula for complete texts, computed in another way than rules are evaluated. */
function isTrue(formula: AnswerFormula, rules: AnswerRules, texts: readonly string[]): boolean {
  switch (formula.kind) {
    case 'and':
      return formula.parts.every((part) => isTrue(part, rules, texts))
    case 'or':
      return formula.parts.some((part) => isTrue(part, rules, texts))
    case 'pattern':
      return texts.some((text) => rules.patterns.find(formula.pattern, text, 0) !== null)
    case 'literal':
      return texts.some((text) => rules.literals.hits(text).includes(formula.literal))
    case 'size':
      return texts.reduce((sum, text) => sum + Array.from(text).length, 0) >= formula.atLeast
    case 'constant':
      return formula.value
    case 'score':
    case 'term':
    case 'entity':
      throw new Error('There are none here.')
  }
}

const atom = fc.oneof(
  fc
    .constantFrom('a', 'b', 'ab+c?', '(?i)a b', '\\\\bb', '^a', '[ab]{2,3}', 'é')
    .map((it) => `text.matches("${it.replace('+', '{1,9}')}")`),
  fc.constantFrom('a', 'b a', 'é', 'ﬁ', 'bb').map((it) => `text.contains("${it}")`),
  fc
    .constantFrom('["a", "bb"]', '["é"]', '["x", "y", "ba"]')
    .map((it) => `text.containsAny(${it})`),
  fc.tuple(fc.constantFrom('>', '>='), fc.nat(8)).map(([op, n]) => `text.size() ${op} ${n}`),
  fc.tuple(fc.constantFrom('<', '<='), fc.nat(8)).map(([op, n]) => `${n} ${op} text.size()`),
  fc.constantFrom(
    'true',
    'false',
    'stream',
    '!stream',
    'direction == "response"',
    '(1 - (2 - 3)) * 2 == 4',
    '(-(1 - 3) == 2 ? stream : !stream)',
    '1 / 0 == 1',
    'categories.exists(c, c == "hate")',
    'system.contains("kind")',
    'last_message.matches("(?i)LAST")',
    'system.size() > 3 && !(model == "💥\\n\\"")',
    '0.1234567890123 < 0.1234567890124',
  ),
)
const expression: fc.Arbitrary<string> = fc.letrec<{ expression: string }>((tie) => ({
  expression: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    atom,
    fc
      .tuple(tie('expression'), fc.constantFrom('&&', '||'), tie('expression'))
      .map(([left, op, right]) => `(${left} ${op} ${right})`),
  ),
})).expression
const texts = fc.array(
  fc.string({
    unit: fc.constantFrom('a', 'b', 'c', ' ', 'é', 'e\u0301', 'ﬁ', '\u200b', '💥'),
    maxLength: 8,
  }),
  { maxLength: 3 },
)

test('a formula says of complete texts what the evaluation says, also where a constant has no value', () => {
  const response = { ...call, direction: 'response' } as const
  let matched = 0
  fc.assert(
    fc.property(expression, texts, (source, segments) => {
      const set = setOf([`cel: ${source}`])
      const [outcome] = set.evaluate(response, segments)
      const opened = set.openAnswer(call)
      const [rule] = opened.rules
      const normalised = segments.map((segment) => normalise(segment).text)
      // Absent: the constants of the call decided that it cannot match.
      const isMatch = rule ? isTrue(rule.formula!, opened, normalised) : false
      expect({ source, isMatch }).toEqual({ source, isMatch: outcome!.isMatch })
      if (isMatch) matched++
    }),
    { numRuns: 1000 },
  )
  expect(matched).toBeGreaterThan(100)
})

describe('what an answer needs', () => {
  const open = (rules: readonly string[], more: Partial<SetRule> = {}) =>
    setOf(rules, more).openAnswer(call)

  test.each<[string[], AnswerRules['hold'], number]>([
    [['text.matches("a{2,5}")'], 5, 5],
    [['text.contains("abcd")'], 3, 0],
    [['text.contains("abcd")', 'text.matches("ab")'], 3, 2],
    [['text.containsAny(["abcd", "x"]) && text.matches("a{7}")'], 7, 7],
    [['text.size() >= 10'], 0, 0],
    [['stream'], 'none', 0],
    [['true'], 'none', 0],
    [['input_tokens > 5 ? 9000 : 0'], 'none', 0],
    [['direction == "request" && text.matches("a{2,5}")'], 'none', 0],
    [['direction == "request" && !text.matches("a")'], 'none', 0],
    [['stream || !text.matches("a")'], 'none', 0],
    [['direction == "response" && !text.matches("a")'], 'full', 0],
    [['direction == "response" && text.matches("a{2,5}")'], 5, 5],
    [['system.matches("kind") && last_message.contains("nothing")'], 'none', 0],
    [['!text.matches("a")', 'text.matches("ab")'], 'full', 2],
    [['text.size() < 10'], 'full', 0],
    [['text.size() > input_tokens'], 'full', 0],
    [['text.matches("a.*b")'], 'full', 0],
    [['text.matches("a$")'], 'full', 0],
    [['text.matches("[ab]{513}")'], 'full', 0],
    [['text.matches("[ab]{512}")'], 512, 512],
    [['text.matches("a") ? true : false'], 'full', 0],
    [['text.matches("a") ? 9000 : 0'], 'full', 0],
    [['text.matches("a") == true'], 'full', 0],
    [['categories.exists(c, text.contains("a"))'], 'full', 0],
    [['string(text.size()).contains("1")'], 'full', 0],
    [[], 'none', 0],
  ])('%j: holds %s', (rules, hold, patternHold) => {
    expect(open(rules.map((rule) => `cel: ${rule}`))).toMatchObject({ hold, patternHold })
    expect(
      open(
        rules.map((rule) => `cel: ${rule}`),
        { mode: 'monitoring' },
      ).hold,
    ).toBe('none')
  })

  test('constants are evaluated for the call, and decide what they can', () => {
    const { rules } = open([
      'cel: stream && text.contains("a")',
      'cel: !stream && text.contains("b")',
      'cel: stream || text.contains("c")',
      'cel: 1 / 0 == 1 && text.contains("d")',
      'cel: 1 / 0 == 1 && !stream',
      'cel: input_tokens * 60',
    ])
    const literal = (number: number) => ({ kind: 'literal', literal: number })
    const always = { kind: 'constant', value: true }
    expect(rules).toEqual([
      { index: 0, isEnforcing: true, formula: literal(0), isError: false },
      { index: 2, isEnforcing: true, formula: always, isError: false },
      { index: 3, isEnforcing: true, formula: literal(3), isError: true },
      { index: 5, isEnforcing: true, formula: always, isError: false },
    ])
  })

  test('what `pii` counts is an atom where a growing text can only add to it', () => {
    const { entities, hold, rules } = open([
      'cel: pii("CARD") > 0 || pii("EMAIL") >= 3',
      'cel: 1 <= pii("CARD")',
    ])
    expect(entities).toEqual([
      { kind: 'entity', entity: 'CARD', atLeast: 1 },
      { kind: 'entity', entity: 'EMAIL', atLeast: 3 },
    ])
    expect(hold).toBe(520)
    expect(rules[1]?.formula).toEqual({ kind: 'entity', atom: 0 })
    for (const other of [
      'pii("CARD") == 1',
      'pii("CARD") < 1',
      'pii("CARD") >= 0',
      '!(pii("IP") > 0)',
    ])
      expect(open([`cel: ${other}`])).toMatchObject({ hold: 'full', entities: [] })
  })

  test('monitoring rules are evaluated at the end', () => {
    expect(open(['cel: text.contains("a")'], { mode: 'monitoring' }).rules).toEqual([
      { index: 0, isEnforcing: false, formula: null },
    ])
  })

  test('plain language is an atom of its rule, and its gate comes before it', () => {
    const { scores, rules } = open([
      'Be kind.',
      'when: text.contains("a")\nBe kind.',
      'when: model == "none"\nBe kind.',
      'when: !text.contains("a")\nBe kind.',
    ])
    expect(scores).toEqual([0, 1, 2, 3].map((rule) => ({ kind: 'judged', rule })))
    const judged = (atom: number) => ({ kind: 'score', atom })
    expect(rules.map(({ index, formula }) => [index, formula])).toEqual([
      [0, judged(0)],
      [1, { kind: 'and', parts: [{ kind: 'literal', literal: 0 }, judged(1)] }],
      [3, null],
    ])
  })

  test('scores are numbered, each once', () => {
    const { scores, rules } = open([
      'cel: score("hate") > 0.5 || score("sexual") >= 1',
      'cel: 0.5 < score("hate") && text.contains("a")',
      'cel: score("hate") * 2.0 > 0.5',
    ])
    expect(scores).toEqual([
      { kind: 'score', category: 'hate', above: 0.5, isInclusive: false },
      { kind: 'score', category: 'sexual', above: 1, isInclusive: true },
    ])
    const score = (atom: number) => ({ kind: 'score', atom })
    expect(rules.map(({ formula }) => formula)).toEqual([
      { kind: 'or', parts: [score(0), score(1)] },
      { kind: 'and', parts: [score(0), { kind: 'literal', literal: 0 }] },
      null, // decided at the end
    ])
  })
})

describe('long texts', () => {
  const patterns = [
    'a{3}b',
    '^x',
    '^mid',
    String.raw`\bend$`,
    'x[^y]*w',
    String.raw`\Bq\b`,
    String.raw`\z`,
  ]
  const set = setOf([
    ...patterns.map((pattern) => `cel: text.matches(r"${pattern}")`),
    'cel: text.contains("needle")',
  ])

  test('are read in steps of at most 8 KiB, whatever the engine', () => {
    const rule = compileRule('cel: text.matches("a{3}b")', engine)
    if (typeof rule === 'string') throw new Error(rule)
    const openSearch = finish(createPatternSearch([{ mode: 'enforcing', rule }], engine))
    const search = openSearch({ hits: new Set(), missed: new Set() })
    expect([...search.read('w'.repeat(64 * 1024))]).toHaveLength(8)
    expect([...search.end()]).toHaveLength(0)
  })

  test('are never searched further than a match can span, also where the edge of a slice looks like a match', () => {
    const rules = ['^w{2}', String.raw`\bw{3}`, 'w{2}$', 'w{9}x'].map((it) =>
      compileRule(`cel: text.matches(r"${it}")`, engine),
    )
    const longest = { hits: 0, find: 0 }
    const watched: PatternEngine = {
      ...engine,
      *joinInSteps(all) {
        const made = yield* engine.joinInSteps(all)
        const note = (ask: 'hits' | 'find', { length }: string) => {
          longest[ask] = Math.max(longest[ask], length)
        }
        return {
          hits: (text) => (note('hits', text), made.hits(text)),
          find: (number, text, from) => (note('find', text), made.find(number, text, from)),
        }
      },
    }
    const enforcing = (rules as CompiledRule[]).map((rule) => ({
      mode: 'enforcing' as const,
      rule,
    }))
    const openSearch = finish(createPatternSearch(enforcing, watched))
    const hits = new Set<string>()
    const found = { hits, missed: new Set<string>() }
    expect([...openSearch(found).read(`aw${'w'.repeat(20 * slice)}a`)]).toHaveLength(21)
    expect([...hits]).toEqual([])
    // The character before a slice, the slice, and the ten characters of the widest match and one more.
    expect(longest).toEqual({ hits: slice + 12, find: slice + 12 })
  })

  test('are found in slices as in one piece, also at the edges of slices', async () => {
    const words = ['aaab', 'needle', 'wqw q', ' end', 'x', 'mid', '\nmid']
    for (const word of words) {
      for (const at of [0, slice - 4, slice - 3, slice - 2, slice - 1, slice, 2 * slice - 1]) {
        // Also a text that ends where a slice does.
        const after = 2 * slice - at - (at % 2 === 0 ? word.length : 0)
        const text = `${'w'.repeat(at)}${word}${'w'.repeat(Math.max(0, after))}`
        const outcomes = await evaluateInSlices(set.openTexts(call, [text]), someAsker)
        const { text: normalised } = normalise(text)
        const expected = patterns.map((it) => engine.compileSet([it]).hits(normalised).length > 0)
        const found = outcomes.slice(0, patterns.length).map(({ isMatch }) => isMatch)
        expect({ word, at, found }).toEqual({ word, at, found: expected })
        expect(outcomes[patterns.length]?.isMatch).toBe(word === 'needle')
      }
    }
  })

  test('that are too long fail the rules that ask for them, and no others', async () => {
    const rules = ['text.contains("a")', 'system.contains("a")', 'stream'].map((it) => `cel: ${it}`)
    const facts = { ...call, isStreamed: false, system: ['a'] }
    const tooLong = '\ufdfa'.repeat(300_000)
    const outcomes = await evaluateInSlices(setOf(rules).openTexts(facts, [tooLong]), someAsker)
    expect(numbered(outcomes)).toEqual([
      { index: 0, score: 10_000, isMatch: true, isError: true },
      { index: 1, score: 10_000, isMatch: true, isError: false },
      { index: 2, score: 0, isMatch: false, isError: false },
    ])
  })
})
