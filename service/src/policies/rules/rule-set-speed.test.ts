import { describe, expect, test } from 'vitest'

import { answerFacts } from '#policies/guard/testing/rule-set-of.ts'
import { loadPatternEngine } from '#text/pattern-engine.ts'

import type { AnswerRules } from './answer-rules.ts'
import type { CallFacts } from './facts.ts'
import { compileRule } from './rule-program.ts'
import { RuleSet } from './rule-set.ts'
import type { SetRule } from './set-rule.ts'

const engine = loadPatternEngine()
const call: CallFacts = { ...answerFacts, direction: 'request', lastMessage: [], system: [] }

function setOf(sources: readonly string[]): RuleSet {
  const rules = sources.map((source): SetRule => {
    const rule = compileRule(source, engine)
    if (typeof rule === 'string') throw new Error(`${source} ${rule}`)
    const names = { policyId: 'p', policyName: 'P', version: 1 }
    return { ...names, mode: 'enforcing', threshold: 5000, rule }
  })
  return new RuleSet(rules, engine)
}

/** Time of this thread alone: what other processes and threads do does not count. */
function busyMs(work: () => unknown): number {
  const before = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}

const words =
  'merger acquisition layoff salary bonus invoice contract supplier forecast budget roadmap patent lawsuit settlement audit payroll vendor tender margin rebate pricing embargo sanction export dosage patient diagnosis insurer premium mortgage'.split(
    ' ',
  )
const wordAt = (index: number) => words[index % words.length] ?? ''

const goal = engine.name === 're2' ? { p50: 0.5, p95: 1, ratio: 0.8 } : { p50: 2, p95: 5, ratio: 5 }

test('100 rules with 200 patterns are quick on 2 KB of text', () => {
  const patterns = Array.from({ length: 100 }, (_, index) => {
    const [one, two, three] = [wordAt(index), wordAt(index * 7 + 3), wordAt(index * 11 + 5)]
    return [
      String.raw`(?i)\b${one}\s{1,5}${two}${index}\b`,
      String.raw`(?i)\b(?:${three}|${one})s?${index}\b`,
    ] as const
  })
  const set = setOf(
    patterns.map(
      ([one, two]) =>
        `cel: (text.matches(r"${one}") || text.matches(r"${two}")) && direction == "request" && (model.startsWith("claude") || project_id in ["p1", "p2"])`,
    ),
  )
  // Ordinary prose, of which each text has another part.
  const prose = Array.from({ length: 2000 }, (_, index) =>
    index % 40 === 0
      ? wordAt(index / 40)
      : 'the report of this week is ready'.split(' ')[index % 7],
  ).join(' ')
  const texts = Array.from({ length: 400 }, (_, index) =>
    prose.slice(index * 13, index * 13 + 2048),
  )
  const plain = patterns.flat().map((it) => new RegExp(it.replace('(?i)', ''), 'i'))
  for (const text of texts.slice(0, 200)) set.evaluate(call, [text]) // V8 compiles what runs often

  const best = { p50: Infinity, p95: Infinity, ratio: Infinity }
  // Neighbours and collections can spoil a round, but not every one.
  for (let round = 0; round < 5 && (best.p50 > goal.p50 || best.p95 > goal.p95); round++) {
    const baseline = summarise(texts, (text) => plain.filter((it) => it.test(text)))
    const measured = summarise(texts, (text) => set.evaluate(call, [text]))
    best.p50 = Math.min(best.p50, measured.p50)
    best.p95 = Math.min(best.p95, measured.p95)
    best.ratio = Math.min(best.ratio, measured.p50 / baseline.p50)
  }
  const figures = [best.p50, best.p95, best.ratio].map((figure) => figure.toFixed(3))
  console.log(
    `100 rules on 2 KB with ${engine.name}: p50 ${figures[0]} ms, p95 ${figures[1]} ms, ${figures[2]} times V8 one by one`,
  )
  // On a machine that is too slow or too busy for milliseconds, V8 in the same round is the measure.
  const isQuick = best.p50 < goal.p50 && best.p95 < goal.p95
  expect({ ...best, isQuick: isQuick || best.ratio < goal.ratio }).toMatchObject({ isQuick: true })
})

function summarise(texts: readonly string[], work: (text: string) => unknown) {
  const times = texts.map((text) => {
    const startedAt = performance.now()
    work(text)
    return performance.now() - startedAt
  })
  times.sort((one, other) => one - other)
  const at = (share: number) => times[Math.floor(times.length * share)] ?? Infinity
  return { p50: at(0.5), p95: at(0.95) }
}

describe('no step of an evaluation holds the event loop for long', () => {
  const literal = 'a'.repeat(127)
  const rules = {
    'nested repetition': String.raw`cel: text.matches(r"(a{1,10}){1,10}b")`,
    'alternatives that overlap': 'cel: text.matches("(a|aa|a?){1,30}c")',
    'letters and digits': String.raw`cel: text.matches(r"\p{L}{1,60}\p{N}{1,60}x")`,
    'many literals': `cel: text.containsAny([${Array.from({ length: 190 }, (_, index) => `"${'a'.repeat(index % 12)}b"`).join(', ')}])`,
    'a literal that almost fits': `cel: text.contains("${'a'.repeat(999)}b")`,
    'long texts in a loop': `cel: [${Array(190).fill(1).join(',')}].exists(n, "${literal}a${literal}".contains("${'a'.repeat(60)}b${'a'.repeat(60)}"))`,
    'a long loop': `cel: [${Array(80).fill(1).join(',')}].exists(n, ${Array(6).fill('n > 1').join(' || ')})`,
    'a long condition': `cel: ${Array(90).fill('input_tokens < 1').join(' || ')}`,
    'a division by zero in a long rule': `cel: ${Array(60).fill('1 / 0 == 1').join(' || ')}`,
  }
  const texts = {
    'one letter': 'a'.repeat(200_000),
    é1a: 'é1a'.repeat(66_000),
    spaces: ' '.repeat(200_000),
    'combining marks': `e${'\u0301'.repeat(200_000)}`,
    'ligatures that grow': '\ufdfa'.repeat(50_000),
    'many segments': '',
  }

  test.each(Object.entries(rules))('%s', (_name, rule) => {
    const set = setOf([rule])
    for (const [name, text] of Object.entries(texts)) {
      const segments = text === '' ? Array<string>(20_000).fill('aaaaaaaaa') : [text]
      let longestMs = Infinity
      // A garbage collection may fall into one round, but not into three.
      for (let round = 0; round < 3 && longestMs > 50; round++) {
        const steps = set.openTexts(call, segments).exact()
        longestMs = 0
        let isDone = false
        while (!isDone) {
          longestMs = Math.max(
            longestMs,
            busyMs(() => (isDone = steps.next().done === true)),
          )
        }
      }
      expect.soft({ name, isQuick: longestMs < 50, longestMs }).toMatchObject({ isQuick: true })
    }
  })
})

test('no step of opening an answer does, however long the texts are that its constants ask for', () => {
  const set = setOf([
    String.raw`cel: last_message.matches(r"(a{1,10}){1,10}b") && text.contains("a")`,
    'cel: (system.contains("ab") || system.size() > 9) && text.contains("b")',
  ])
  const long = 'a'.repeat(2_000_000)
  const facts = { ...call, lastMessage: [long], system: [long] }
  let longestMs = Infinity
  for (let round = 0; round < 3 && longestMs > 50; round++) {
    const steps = set.openAnswerInSteps(facts)
    longestMs = 0
    let opened: AnswerRules | undefined
    const takeStep = () => {
      const step = steps.next()
      if (step.done) opened = step.value
    }
    while (!opened) longestMs = Math.max(longestMs, busyMs(takeStep))
    expect(opened).toMatchObject({ rules: [{ index: 1 }] })
  }
  expect(longestMs).toBeLessThan(50)
})
