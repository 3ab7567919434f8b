import type { ScoreWindows, Window } from '#policies/guard/window-queue.ts'

/** A scorer that judges each window by itself. */
export const scoreEach =
  (score: (window: Window, signal: AbortSignal) => Promise<readonly number[]>): ScoreWindows =>
  (windows, signal) =>
    Promise.all(windows.map((window) => score(window, signal)))
