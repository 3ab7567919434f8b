import type { ScoreWindows, Window, WindowScorer } from '#policies/guard/window-queue.ts'
import { judgeGrid } from '#text/windows/window-grid.ts'

/** A scorer that judges each window by itself. */
export const scoreEach =
  (score: (window: Window, signal: AbortSignal) => Promise<readonly number[]>): ScoreWindows =>
  (windows, signal) =>
    Promise.all(windows.map((window) => score(window, signal)))

/** The scorers of an answer that has one only, with the widest windows that there are. */
export const oneScorer = (scoreWindows: ScoreWindows): readonly WindowScorer[] => [
  { grid: judgeGrid, scoreWindows },
]
