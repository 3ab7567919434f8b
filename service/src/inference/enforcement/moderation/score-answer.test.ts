import { expect, test } from 'vitest'

import { createFindings } from '#inference/enforcement/findings.ts'
import type { Category } from '#moderation/categories.ts'
import type { CallModeration, CategoryVerdict } from '#moderation/moderate.ts'
import type { Segment } from '#moderation/scorer.ts'
import { createMetrics } from '#platform/metrics.ts'
import { ScorerUnavailable, type Window } from '#policies/guard/window-queue.ts'
import { fineGrid, remoteGrid } from '#text/windows/window-grid.ts'

import { scoreAnswer } from './score-answer.ts'

const { signal } = new AbortController()
const passed: CategoryVerdict = {
  blocked: null,
  reached: [],
  isUnavailable: false,
  isUnscorable: false,
  isDegraded: false,
  hasUnscoredImage: false,
  scores: new Map(),
  failures: [],
}

type Opened = { read?: readonly Category[]; isKnown?: boolean }

/** Texts say their score of hate; one with `harm` is blocked. Sexual texts are looked for in this process. */
function open({ read = ['hate'], isKnown = false }: Opened = {}) {
  const asked: number[] = []
  const verdictOn = (segments: readonly Segment[]): CategoryVerdict => {
    const hate = Math.max(...segments.map(({ text }) => Number.parseFloat(text)))
    const blocked = segments.some(({ text }) => text.includes('harm')) ? 'self-harm' : null
    return { ...passed, blocked, scores: new Map(Number.isNaN(hate) ? [] : [['hate', hate]]) }
  }
  const checks: CallModeration = {
    checkLocally: async () => passed,
    async checkRemotely(segments) {
      asked.push(segments.length)
      return verdictOn(segments)
    },
    findKnown: (segments) => (isKnown ? verdictOn(segments) : undefined),
    checkWindow: (text) => ({
      ...passed,
      scores: new Map([['sexual', text.includes('love') ? 0.7 : 0.1]]),
    }),
    inAnswers: {
      local: { categories: new Set(['sexual']), grid: fineGrid },
      remote: { categories: new Set(['hate', 'sexual/minors', 'self-harm']), grid: remoteGrid() },
    },
  }
  const atoms = (['hate', 'sexual'] as const).map((category) => ({
    kind: 'score' as const,
    category,
    above: 0.5,
    isInclusive: false,
  }))
  const blocking: Category[] = ['sexual/minors', 'self-harm']
  const findings = createFindings()
  const scoring = {
    checks,
    blocking,
    atoms,
    read: new Set(read),
    findings,
    hide: null,
    metrics: createMetrics(),
  }
  const { scorers, highest } = scoreAnswer(scoring)
  const [local, remote] = scorers
  return { asked, local: local!, remote: remote!, scoreWindows: remote!.scoreWindows, highest }
}

const unscored = { atoms: [], error: new ScorerUnavailable('a score is missing') }

const windowsOf = (...texts: string[]): Window[] =>
  texts.map((text) => ({ channel: 'text', text, start: 0, end: text.length, isLast: false }))

test('windows that reach nothing are asked about together', async () => {
  const { asked, scoreWindows, highest } = open()
  expect(await scoreWindows(windowsOf('0.2', '0.4', '0.1'), signal)).toEqual([[], [], []])
  expect(asked).toEqual([3])
  expect([...highest()]).toEqual([['hate', 0.4]])
})

test('each window is told what it reaches, the atoms of categories after those of rules', async () => {
  const { scoreWindows, highest } = open()
  const windows = windowsOf('0.2', '0.6', '0.1 harm', '0.9 harm')
  expect(await scoreWindows(windows, signal)).toEqual([[], [0], [3], [0, 3]])
  expect([...highest()]).toEqual([['hate', 0.9]])
})

test('the highest score is that of all windows, however they were asked about', async () => {
  const { scoreWindows, highest } = open()
  await scoreWindows(windowsOf('0.3', '0.8'), signal)
  await scoreWindows(windowsOf('0.4'), signal)
  expect([...highest()]).toEqual([['hate', 0.8]])
})

test('a window without a score does not hide what others reach', async () => {
  const { scoreWindows } = open()
  const windows = windowsOf('0.2', '0.1 harm', 'none', '0.3')
  expect(await scoreWindows(windows, signal)).toEqual([[], [3], unscored, []])
})

test('a missing score decides nothing, unless the window is blocked anyway', async () => {
  const { scoreWindows, highest } = open()
  expect(await scoreWindows(windowsOf('none'), signal)).toEqual([unscored])
  expect(await scoreWindows(windowsOf('harm'), signal)).toEqual([[3]])
  expect(highest().size).toBe(0)
})

test('the scorer in this process has its verdict at once, with windows of its own', () => {
  const { asked, local, remote, highest } = open({ read: ['hate', 'sexual'] })
  const [plain, loving] = windowsOf('0.9 hateful', 'love')
  expect([local.findKnown?.(plain!), local.findKnown?.(loving!)]).toEqual([[], [1]])
  expect([local.grid, remote.grid]).toEqual([fineGrid, remoteGrid()])
  expect(asked).toEqual([])
  // What it does not look for is not missing.
  expect([...highest()]).toEqual([
    ['hate', 0],
    ['sexual', 0.7],
  ])
})

test('a window whose scores are known is not asked about', () => {
  const { asked, remote, highest } = open({ isKnown: true })
  const [low, high] = windowsOf('0.2', '0.6 harm')
  expect([remote.findKnown?.(low!), remote.findKnown?.(high!)]).toEqual([[], [0, 3]])
  expect(asked).toEqual([])
  expect([...highest()]).toEqual([['hate', 0.6]])
  expect(open().remote.findKnown?.(low!)).toBeUndefined()
})
