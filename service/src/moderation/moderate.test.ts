import { expect, test } from 'vitest'

import { remoteGrid } from '#text/windows/window-grid.ts'

import { alwaysBlocked, categories, type Category, type CategoryScores } from './categories.ts'
import type { Moderation } from './create-scorers.ts'
import { blockingCategories, findModerationGap, openModeration } from './moderate.ts'
import { noModeration } from './read-moderation.ts'
import { ScorerFailure, type ScorerProblem, type Segment } from './scorer.ts'

const organizationId = 'org_1'
const neverAborted = new AbortController().signal
const segments = [{ role: 'user' as const, text: 'a text' }]

type Said = {
  scores?: CategoryScores
  problem?: ScorerProblem
  cause?: ScorerFailure
  covers?: readonly Category[]
}

/** Moderation with one scorer, which says or fails as given, with thresholds of 0.5. */
function moderationOf(said: Said, settings: Partial<Moderation['settings']> = {}): Moderation {
  const covers = new Set(said.covers ?? categories)
  return {
    settings: { ...noModeration, ...settings },
    covers,
    grid: remoteGrid(),
    findKnown: () => undefined,
    pausing: () => [],
    async score(given, wanted) {
      const { scores = {}, problem } = said
      const reached = [...wanted].filter((category) => (scores[category] ?? 0) >= 5000)
      const cause = said.cause ?? new ScorerFailure('timeout', 'It was late.')
      const failure = problem && new ScorerFailure(problem, 'It failed.', { cause })
      return {
        segments: given.map(() =>
          failure
            ? { scores: {}, reached: [], hasUnreadImage: false }
            : { scores, reached, hasUnreadImage: false },
        ),
        unscored: failure ? wanted : new Set(),
        failed: failure ? [{ name: 'remote', covers, failure }] : [],
      }
    },
  }
}

const localOf = (scores: CategoryScores) => ({
  scoreWindow: () => scores,
  score: async (given: readonly Segment[]) => given.map(() => scores),
})

const check = (
  moderation: Moderation,
  { local = {}, flagged = [] }: { local?: CategoryScores; flagged?: readonly Category[] } = {},
) => {
  const blocking = blockingCategories(flagged)
  return openModeration({ moderation, local: localOf(local), blocking, organizationId })
}

const passed = {
  blocked: null,
  reached: [] as Category[],
  isUnavailable: false,
  isUnscorable: false,
  isDegraded: false,
  hasUnscoredImage: false,
  scores: new Map(),
  failures: expect.any(Array) as unknown,
}

const blockedBy = (...reached: Category[]) => ({ blocked: reached[0], reached })

test('what is always blocked needs not be asked for, everything else does', async () => {
  for (const category of categories) {
    const moderation = moderationOf({ scores: { [category]: 9000 } })
    const isAlways = (alwaysBlocked as readonly Category[]).includes(category)
    const unasked = await check(moderation).checkRemotely(segments, neverAborted)
    expect(unasked).toEqual(isAlways ? { ...passed, ...blockedBy(category) } : passed)
    const asked = check(moderation, { flagged: [category] })
    expect(await asked.checkRemotely(segments, neverAborted)).toEqual({
      ...passed,
      ...blockedBy(category),
    })
  }
})

test('where a scorer covers a category, the local one does not decide', async () => {
  const checks = check(moderationOf({}), { local: { 'self-harm': 9900 } })
  expect(await checks.checkLocally(segments, neverAborted)).toEqual(passed)
  expect(await checks.checkRemotely(segments, neverAborted)).toEqual(passed)
})

test('the local scorer decides what no other covers, from its own threshold on', async () => {
  const moderation = moderationOf({ covers: ['hate'] }, { acceptsLocalOnly: true })
  const at = (score: number) =>
    check(moderation, { local: { 'self-harm': score } }).checkLocally(segments, neverAborted)
  expect(await at(5999)).toEqual(passed)
  expect(await at(6000)).toEqual({ ...passed, ...blockedBy('self-harm') })
})

const outages: ScorerProblem[] = ['timeout', 'unreachable', 'busy', 'error', 'paused']

test.each(outages)('%s: nothing passes unseen, unless the operator allows it', async (problem) => {
  const verdictOf = (degraded: 'refuse' | 'allow', local: CategoryScores = {}) =>
    check(moderationOf({ problem }, { degraded }), { local }).checkRemotely(segments, neverAborted)
  const degraded = { ...passed, isDegraded: true }
  expect(await verdictOf('refuse')).toEqual({ ...degraded, isUnavailable: true })
  expect(await verdictOf('allow')).toEqual(degraded)
  const hit = { 'sexual/minors': 6000 }
  expect(await verdictOf('refuse', hit)).toEqual({ ...degraded, ...blockedBy('sexual/minors') })
  expect(await verdictOf('allow', hit)).toEqual({ ...degraded, ...blockedBy('sexual/minors') })
})

test('a scorer that refuses this gateway is no outage: calls are refused in any case', async () => {
  const moderation = moderationOf({ problem: 'misconfigured' }, { degraded: 'allow' })
  const verdict = await check(moderation).checkRemotely(segments, neverAborted)
  expect(verdict).toEqual({ ...passed, isDegraded: true, isUnavailable: true })
})

const byTexts: [ScorerProblem, boolean][] = [
  ['malformed', false],
  ['overloaded', false],
  ['rejected', true],
  ['too_long', true],
]
test.each(byTexts)('%s depends on the texts: no setting lets them pass', async (problem, is400) => {
  for (const degraded of ['allow', 'refuse'] as const) {
    const moderation = moderationOf({ problem }, { degraded })
    const verdict = await check(moderation).checkRemotely(segments, neverAborted)
    const refused = { ...passed, isDegraded: true, isUnavailable: true, isUnscorable: is400 }
    expect(verdict).toEqual(refused)
  }
})

test('a pause for another reason than an outage, or a failure at an image, is no outage', async () => {
  const wrongKey = new ScorerFailure('misconfigured', 'It answered 401.')
  const atImage = new ScorerFailure('timeout', 'It was late.', { mayBeByCaller: true })
  for (const cause of [wrongKey, atImage]) {
    const moderation = moderationOf({ problem: 'paused', cause }, { degraded: 'allow' })
    const verdict = await check(moderation).checkRemotely(segments, neverAborted)
    expect(verdict).toMatchObject({ isUnavailable: true, isUnscorable: false })
  }
})

test('texts that are too long for the local scorer are refused, and are no fault', async () => {
  const local = {
    ...localOf({}),
    score: () => Promise.reject(new ScorerFailure('too_long', 'Too long.')),
  }
  const refused = { isUnavailable: true, isUnscorable: true, blocked: null }
  const blocking = blockingCategories([])
  const alone = openModeration({
    moderation: moderationOf({ covers: [] }),
    local,
    blocking,
    organizationId,
  })
  expect(await alone.checkLocally(segments, neverAborted)).toMatchObject(refused)
  const failing = moderationOf({ problem: 'timeout' }, { degraded: 'allow' })
  const other = openModeration({ moderation: failing, local, blocking, organizationId })
  expect(await other.checkRemotely(segments, neverAborted)).toMatchObject(refused)
})

test('in an outage the local scorer decides about categories that were asked for', async () => {
  const local = localOf({ hate: 7000 })
  const moderation = moderationOf({ problem: 'timeout', covers: ['hate'] })
  const checks = openModeration({ moderation, local, blocking: ['hate'], organizationId })
  const blocked = { ...passed, isDegraded: true, ...blockedBy('hate') }
  expect(await checks.checkRemotely(segments, neverAborted)).toEqual(blocked)
  const other = openModeration({
    moderation,
    local: localOf({}),
    blocking: ['hate'],
    organizationId,
  })
  const verdict = await other.checkRemotely(segments, neverAborted)
  expect(verdict).toEqual({ ...passed, isDegraded: true })
})

test('without a scorer for both categories that are always blocked, the operator has to accept that', () => {
  expect(findModerationGap(moderationOf({}))).toBeNull()
  const partly = moderationOf({ covers: ['self-harm', 'hate'] })
  expect(findModerationGap(partly)).toContain('no scorer covers sexual/minors: ')
  expect(findModerationGap(moderationOf({ covers: [] }))).toContain('self-harm and sexual/minors')
  expect(findModerationGap(moderationOf({ covers: [] }, { acceptsLocalOnly: true }))).toBeNull()
})
