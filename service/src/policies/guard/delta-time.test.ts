import { expect, test } from 'vitest'

import { re2jsEngine } from '#text/re2js-engine.ts'

import { AnswerGuard } from './answer-guard.ts'
import { answerFacts, patternEngine, ruleSetOf } from './testing/rule-set-of.ts'

/** Twenty rules as administrators write them. */
const patterns = [
  'sk-[a-z0-9]{8,40}',
  'AKIA[0-9A-Z]{16}',
  '\\b[0-9]{3}-[0-9]{2}-[0-9]{4}\\b',
  '(?i)internal use only',
  '(?i)project (falcon|eagle|heron)',
  '\\bEMP[0-9]{6}\\b',
  '(?i)password.{0,20}is',
  '(?i)\\b(buy|sell) [a-z]{1,5} shares\\b',
  '(?i)wire .{1,30} to',
  'https?://[a-z.]{1,30}\\.internal',
  '(?i)confidential.{0,40}draft',
  '\\b10\\.[0-9]{1,3}\\.',
]
const literals = [
  'merger',
  'layoffs',
  'acquisition',
  'Northwind',
  'codename',
  'unreleased',
  'lawsuit',
  'settlement',
]
const rules = [
  ...patterns.map((pattern) => `text.matches(${JSON.stringify(pattern)})`),
  ...literals.map((literal) => `text.contains(${JSON.stringify(literal)})`),
]
const text =
  'Of course, here is a short summary of the three options that were discussed, with their costs. '
const deltas = Array.from({ length: 300 }, (_, number) => {
  const start = (number * 5) % text.length
  return (text + text).slice(start, start + 5)
})

const engines = [patternEngine, re2jsEngine].map((engine) => [engine.name, engine] as const)

test.each(engines)('a delta is judged much faster than deltas come (%s)', (name, engine) => {
  const set = ruleSetOf(rules, engine)
  const run = () => {
    const guard = new AnswerGuard(set.openAnswer(answerFacts), {
      now: () => 0,
      evaluateAtEnd: async () => [],
    })
    const times = deltas.map((delta) => {
      const startMs = performance.now()
      guard.add('text', delta)
      return (performance.now() - startMs) * 1000
    })
    guard.end()
    expect(guard.ended).toBeNull()
    expect(guard.clearedOf('text')).toBe(1500)
    return times
  }
  const first = run()
  for (let warmUp = 0; warmUp < 20; warmUp++) run()
  const times = run().toSorted((a, b) => a - b)
  const at = (share: number) => (times[Math.floor(times.length * share)] ?? 0).toFixed(1)
  console.log(
    `guard (${name}): ${rules.length} rules, µs per delta of 5 characters: p50 ${at(0.5)}, p95 ${at(0.95)}; first delta ${first[0]?.toFixed(0)}`,
  )
  expect(times[150]).toBeLessThan(2000)
})
