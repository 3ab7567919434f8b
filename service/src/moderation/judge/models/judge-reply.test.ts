import fc from 'fast-check'
import { expect, test } from 'vitest'

import { JudgeFailure } from '#moderation/judge/judge.ts'

import { readVerdicts } from './judge-reply.ts'

test('reads a verdict for each rule, in whatever order they are', () => {
  expect(readVerdicts('{"v":[{"i":2,"m":1,"p":90},{"i":1,"m":0,"p":3}]}', 2)).toEqual([
    { rule: 2, isMatch: true, likelihood: 0.9 },
    { rule: 1, isMatch: false, likelihood: 0.03 },
  ])
  expect(readVerdicts('```json\n{"v":[{"i":1,"m":0,"p":50}]}\n```', 1)).toHaveLength(1)
})

const entry = '{"i":1,"m":0,"p":5}'
const noVerdicts: Record<string, string> = {
  'nothing at all': '',
  'a refusal in words': 'I cannot help with that.',
  'an empty list': '{"v":[]}',
  'a rule left out': '{"v":[{"i":1,"m":0,"p":5}]}',
  'a rule too many': `{"v":[${entry},{"i":2,"m":0,"p":5},{"i":3,"m":0,"p":5}]}`,
  'a rule twice': `{"v":[${entry},${entry}]}`,
  'a rule that was not asked about': `{"v":[${entry},{"i":3,"m":0,"p":5}]}`,
  'a rule 0': `{"v":[${entry},{"i":0,"m":0,"p":5}]}`,
  'a cut-off reply': `{"v":[${entry},{"i":2,"m":0`,
  'a match that is unlikely': `{"v":[${entry},{"i":2,"m":1,"p":5}]}`,
  'no match that is likely': `{"v":[${entry},{"i":2,"m":0,"p":95}]}`,
  'a member twice': `{"v":[${entry},{"i":2,"m":1,"p":95,"m":0,"p":0}]}`,
  'two lists': `{"v":[${entry},{"i":2,"m":1,"p":95}],"v":[${entry},{"i":2,"m":0,"p":0}]}`,
  'a percentage above 100': `{"v":[${entry},{"i":2,"m":1,"p":101}]}`,
  'a verdict in words': `{"v":[${entry},{"i":2,"m":"1","p":95}]}`,
  'something between match and no match': `{"v":[${entry},{"i":2,"m":0.5,"p":50}]}`,
  'words after the JSON': `{"v":[${entry},{"i":2,"m":0,"p":5}]} Have a nice day.`,
  'two answers': `{"v":[${entry},{"i":2,"m":1,"p":95}]}\n{"v":[${entry},{"i":2,"m":0,"p":5}]}`,
}

test.each(Object.entries(noVerdicts))('%s is a failure, never "no match"', (_, reply) => {
  expect(() => readVerdicts(reply, 2)).toThrow(
    expect.objectContaining({ kind: 'no_verdict', cause: undefined }),
  )
})

test('a reply that is cut off anywhere is a failure', () => {
  const reply = '{"v":[{"i":1,"m":0,"p":10},{"i":2,"m":1,"p":100}]}'
  for (let end = 0; end < reply.length; end++)
    expect(() => readVerdicts(reply.slice(0, end), 2)).toThrow(JudgeFailure)
})

test('any reply is verdicts on all rules or a failure', () => {
  const value = fc.oneof(fc.integer({ min: -1, max: 101 }), fc.constant(null), fc.boolean())
  const entries = fc.array(
    fc.record({ i: fc.integer({ min: 0, max: 4 }), m: value, p: value }, { requiredKeys: ['i'] }),
    { maxLength: 4 },
  )
  fc.assert(
    fc.property(entries, fc.integer({ min: 1, max: 3 }), (v, rules) => {
      try {
        const read = readVerdicts(JSON.stringify({ v }), rules)
        expect(read.map(({ rule }) => rule).toSorted((one, other) => one - other)).toEqual(
          [1, 2, 3].slice(0, rules),
        )
        for (const { isMatch, likelihood } of read)
          expect(isMatch ? likelihood >= 0.5 : likelihood <= 0.5).toBe(true)
      } catch (error) {
        expect(error).toMatchObject({ kind: 'no_verdict' })
      }
    }),
    { numRuns: 2000 },
  )
})
