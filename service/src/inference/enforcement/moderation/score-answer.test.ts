import { expect, test } from 'vitest'

import { createFindings } from '#inference/enforcement/findings.ts'
import type { Category } from '#moderation/categories.ts'
import type { CallModeration, CategoryVerdict } from '#moderation/moderate.ts'
import { ScorerUnavailable, type Window } from '#policies/guard/window-queue.ts'

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

/** Texts say their score of hate; one with `harm` is blocked. */
function open(read: readonly Category[] = ['hate']) {
  const asked: number[] = []
  const checks: CallModeration = {
    checkLocally: async () => passed,
    async checkRemotely(segments) {
      asked.push(segments.length)
      const hate = Math.max(...segments.map(({ text }) => Number.parseFloat(text)))
      const blocked = segments.some(({ text }) => text.includes('harm')) ? 'self-harm' : null
      return { ...passed, blocked, scores: new Map(Number.isNaN(hate) ? [] : [['hate', hate]]) }
    },
  }
  const atoms = [{ kind: 'score' as const, category: 'hate', above: 0.5, isInclusive: false }]
  const blocking: Category[] = ['sexual/minors', 'self-harm']
  const findings = createFindings()
  const scoring = { checks, blocking, atoms, read: new Set(read), findings, hide: null }
  return { asked, ...scoreAnswer(scoring) }
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
  expect(await scoreWindows(windows, signal)).toEqual([[], [0], [2], [0, 2]])
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
  expect(await scoreWindows(windows, signal)).toEqual([[], [2], unscored, []])
})

test('a missing score decides nothing, unless the window is blocked anyway', async () => {
  const { scoreWindows, highest } = open()
  expect(await scoreWindows(windowsOf('none'), signal)).toEqual([unscored])
  expect(await scoreWindows(windowsOf('harm'), signal)).toEqual([[2]])
  expect(highest().size).toBe(0)
})
