import type { PolicyContent } from '@gatehouse/contract/policy'
import fc from 'fast-check'
import { expect, test } from 'vitest'

import { compileRule } from '#policies/rules/rule-program.ts'
import { loadPatternEngine } from '#text/pattern-engine.ts'

import { createChangeCounts } from './count-changes.ts'
import { findObstacle } from './obstacle.ts'
import { createCallReader, type RecordedCall } from './recorded-call.ts'
import { replayCall } from './replay-call.ts'

const engine = loadPatternEngine()
const policyId = 'pol_1'
const live = {
  rule: 'cel: score("hate")',
  direction: 'both',
  mode: 'monitoring',
  scope: 'organization',
  project_ids: [] as string[],
  match_threshold_basis_points: 5000,
} satisfies PolicyContent
const nothing: RecordedCall = {
  projectId: 'proj_1',
  epoch: 1,
  blockedIn: null,
  hasAnswer: true,
  matches: [],
  scores: [],
  unevaluated: [],
  categories: new Map(),
}

function compile(rule: string) {
  const compiled = compileRule(rule, engine)
  if (typeof compiled === 'string') throw new Error(compiled)
  return compiled
}

function draftOf(change: Partial<PolicyContent> = {}, published: PolicyContent | null = live) {
  const content: PolicyContent = { ...live, ...change }
  const versionAt = () => published && { ...published, version: 3 }
  return { policyId, content, rule: compile(content.rule), versionAt }
}

type Direction = 'request' | 'response'
const scored = (score: number, direction: Direction = 'request') => ({
  policy_id: policyId,
  version: 3,
  direction,
  score,
})
const matched = (
  score: number,
  direction?: Direction,
  mode: PolicyContent['mode'] = 'monitoring',
) => ({
  ...scored(score, direction),
  mode,
})
const afterOf = (
  change: Partial<PolicyContent>,
  call: Partial<RecordedCall>,
  published?: PolicyContent | null,
) => replayCall(draftOf(change, published), { ...nothing, ...call }).after

test('the recorded score is compared with the new threshold', () => {
  const at = (match_threshold_basis_points: number | null, call: Partial<RecordedCall>) =>
    afterOf({ match_threshold_basis_points }, call)
  expect(at(7000, { matches: [matched(6000)] })).toBe('none')
  expect(at(6000, { matches: [matched(6000)] })).toBe('noted')
  expect(at(3000, { scores: [scored(3000)] })).toBe('noted')
  expect(at(3001, { scores: [scored(3000)] })).toBe('none')
  expect(at(null, { scores: [scored(4999)] })).toBe('none')
  expect(at(1, {})).toBe('none')
  // Where the judge was asked later, or the answer was let go in pieces, only matches are recorded.
  const judged = { ...live, rule: 'Be kind.' }
  const asked = { rule: 'Be kind.', direction: 'request' } as const
  expect(afterOf({ ...asked, match_threshold_basis_points: 4999 }, {}, judged)).toBeNull()
  expect(afterOf({ ...asked, match_threshold_basis_points: 5001 }, {}, judged)).toBe('none')
  const enforcing = { ...live, mode: 'enforcing' } as const
  const lower = { mode: 'enforcing', match_threshold_basis_points: 4999 } as const
  expect(afterOf({ ...lower, direction: 'request' }, {}, enforcing)).toBe('none')
  expect(afterOf({ ...lower, direction: 'response' }, {}, enforcing)).toBeNull()
})

test('mode, scope and direction decide what a match does', () => {
  const call = { matches: [matched(9000)] }
  const before = (matches: RecordedCall['matches']) =>
    replayCall(draftOf(), { ...nothing, matches }).before
  expect(before([])).toBe('none')
  expect(before(call.matches)).toBe('noted')
  expect(before([matched(9000, 'response', 'enforcing'), ...call.matches])).toBe('refused')
  expect(before([{ ...matched(9000), policy_id: 'pol_2' }])).toBe('none')
  expect(afterOf({ mode: 'enforcing' }, call)).toBe('refused')
  expect(afterOf({ direction: 'response' }, call)).toBe('none')
  expect(afterOf({ scope: 'unattached' }, call)).toBe('none')
  const only = (id: string): Partial<PolicyContent> => ({ scope: 'projects', project_ids: [id] })
  expect(afterOf(only('proj_1'), call)).toBe('noted')
  expect(afterOf(only('proj_2'), call)).toBe('none')
  expect(afterOf(only('proj_1'), { ...call, projectId: null })).toBe('none')
})

test('what no version with the rule has judged is unknown, unless the scores of the request are enough', () => {
  const elsewhere: PolicyContent = { ...live, scope: 'projects', project_ids: ['proj_2'] }
  const hateful = { categories: new Map([['hate', 0.9]]) }
  const request = { direction: 'request' } as const
  expect(afterOf({ direction: 'both' }, {}, elsewhere)).toBeNull()
  expect(afterOf(request, {}, elsewhere)).toBeNull()
  expect(afterOf(request, hateful, elsewhere)).toBe('noted')
  expect(afterOf(request, hateful, null)).toBe('noted')
  expect(afterOf({ ...request, rule: 'cel: score("hate") > 0.95' }, hateful)).toBe('none')
  expect(afterOf({ ...request, rule: 'cel: score("illicit") > 0.5' }, hateful)).toBeNull()
  expect(afterOf({ ...request, rule: 'cel: score("hate") > 0.5 && stream' }, hateful)).toBeNull()
  const exact = { ...live, rule: 'cel: text.contains("x")' }
  expect(afterOf({ ...exact, ...request }, hateful, elsewhere)).toBeNull()
  expect(afterOf({}, { unevaluated: [policyId] })).toBeNull()
})

test('an event without room for all matches says nothing about those it lacks', () => {
  const others = Array.from({ length: 50 }, () => ({ ...matched(9000), policy_id: 'pol_2' }))
  expect(afterOf({}, { matches: others })).toBeNull()
  // One direction is enough to match.
  expect(afterOf({}, { matches: [...others.slice(1), matched(8000)] })).toBe('noted')
})

const anyContent: fc.Arbitrary<PolicyContent> = fc.record({
  rule: fc.constantFrom('cel: score("hate")', 'cel: text.contains("x")', 'Be kind.'),
  direction: fc.constantFrom('request', 'response', 'both'),
  mode: fc.constantFrom('monitoring', 'enforcing'),
  scope: fc.constantFrom('organization', 'projects', 'unattached'),
  project_ids: fc.constantFrom(['proj_1'], ['proj_2', 'proj_3']),
  match_threshold_basis_points: fc.option(fc.integer({ min: 1, max: 9999 })),
})

/** A call as the published version would have left it. */
const anyCall = (content: PolicyContent) =>
  fc
    .record({
      projectId: fc.constantFrom('proj_1', 'proj_2', null),
      blockedIn: fc.constantFrom('request', 'response', null),
      hasAnswer: fc.boolean(),
      scores: fc.tuple(fc.integer({ min: 0, max: 10_000 }), fc.integer({ min: 0, max: 10_000 })),
    })
    .map(({ scores: [asked, answered], ...call }): RecordedCall => {
      const threshold = content.match_threshold_basis_points ?? 5000
      const isIn =
        content.scope === 'organization' ||
        (content.scope === 'projects' && content.project_ids.includes(call.projectId ?? ''))
      const hasDirection = (direction: Direction) =>
        isIn && ['both', direction].includes(content.direction)
      const all = [
        ...(hasDirection('request') ? [scored(asked)] : []),
        ...(hasDirection('response') && call.hasAnswer ? [scored(answered, 'response')] : []),
      ]
      return {
        ...nothing,
        ...call,
        matches: all
          .filter(({ score }) => score >= threshold)
          .map((each) => ({ ...each, mode: content.mode })),
        scores: all.filter(({ score }) => score > 0 && score < threshold),
      }
    })

test('what is published changes nothing in its own calls', () => {
  const anyTraffic = anyContent
    .map((content) => (content.scope === 'projects' ? content : { ...content, project_ids: [] }))
    .chain((content) => fc.tuple(fc.constant(content), fc.array(anyCall(content))))
  fc.assert(
    fc.property(anyTraffic, ([content, calls]) => {
      const counts = createChangeCounts(draftOf(content, content))
      for (const call of calls) counts.add(call)
      for (const { unchanged, requests } of counts.list()) expect(unchanged).toBe(requests)
    }),
  )
})

test('changes are counted by project, the largest first', () => {
  const counts = createChangeCounts(
    draftOf({ mode: 'enforcing', match_threshold_basis_points: 6000 }),
  )
  const add = (projectId: string | null, call: Partial<RecordedCall>) =>
    counts.add({ ...nothing, projectId, ...call })
  add(null, { matches: [matched(7000)] })
  add('proj_1', { matches: [matched(5500)] })
  add('proj_1', { matches: [matched(5500, 'request', 'enforcing')] })
  add('proj_1', { unevaluated: [policyId] })
  add('proj_1', {})
  expect(counts.list()).toMatchObject([
    { project_id: 'proj_1', requests: 4, no_longer_noted: 1, no_longer_refused: 1, unknown: 1 },
    { project_id: null, requests: 1, newly_refused: 1, unchanged: 0 },
  ])
})

test('a draft with another rule or direction is not replayable, unless it reads scores of requests only', () => {
  const obstacle = (change: Partial<PolicyContent>, published: PolicyContent | null = live) => {
    const { content, rule } = draftOf(change)
    return findObstacle(content, rule, published)
  }
  expect(obstacle({ mode: 'enforcing', scope: 'unattached' })).toBeNull()
  expect(obstacle({}, null)).toContain('never published')
  expect(obstacle({ rule: 'Be kind.' })).toContain('The rule is not the published one')
  expect(obstacle({ rule: 'cel: score("illicit") > 0.5' })).toContain('The rule')
  expect(obstacle({ rule: 'cel: score("illicit") > 0.5', direction: 'request' }, null)).toBeNull()
  expect(obstacle({}, { ...live, direction: 'request' })).toContain("only the direction 'request'")
  expect(obstacle({ direction: 'response' }, { ...live, direction: 'request' })).not.toBeNull()
})

const header = {
  phase: 'call',
  project_id: null,
  policy_epoch: 4,
  policy_target: 'messages',
  outcome: 'completed',
  scores: [],
}
const at = new Date()

test('what monitoring has found later belongs to its call', () => {
  const read = createCallReader()
  const matches = [matched(9000)]
  const later = { ...header, phase: 'monitoring', call_event_id: 'a', matches }
  expect(read({ id: 'b', at, header: later })).toBeNull()
  expect(read({ id: 'c', at, header })).toMatchObject({ epoch: 4, matches: [] })
  expect(read({ id: 'a', at, header })).toMatchObject({ epoch: 4, matches })
})

test.each([
  [{}, { blockedIn: null, hasAnswer: true }],
  [{ outcome: 'failed' }, { blockedIn: null, hasAnswer: false }],
  [{ outcome: 'blocked' }, { blockedIn: 'response', hasAnswer: true }],
  [
    { outcome: 'blocked', status: 400 },
    { blockedIn: 'request', hasAnswer: false },
  ],
  [{ outcome: 'refused', status: 402 }, null],
  [{ outcome: 'unknown' }, null],
  [{ policy_epoch: null }, null],
  [{ policy_target: 'messages.count_tokens' }, null],
])('%j', (members, expected) => {
  const call = createCallReader()({ id: 'a', at, header: { ...header, ...members } })
  if (expected) expect(call).toMatchObject(expected)
  else expect(call).toBeNull()
})
