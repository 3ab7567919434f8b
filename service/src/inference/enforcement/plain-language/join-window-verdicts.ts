import {
  isUnjudged,
  type ScoreWindows,
  type Window,
  type WindowVerdict,
} from '#policies/guard/window-queue.ts'

/** Joins the verdicts of several scorers on windows. What one scorer has found counts even if another one fails. */
export const joinScorers =
  (...scorers: readonly ScoreWindows[]): ScoreWindows =>
  async (windows, signal) => {
    const answers = await Promise.all(scorers.map((score) => settle(score, windows, signal)))
    return windows.map((_, number) => join(answers.map((answer) => answer[number] ?? missing)))
  }

const missing = { atoms: [], error: new Error('The scorer has not judged every window.') }

async function settle(score: ScoreWindows, windows: readonly Window[], signal: AbortSignal) {
  try {
    return await score(windows, signal)
  } catch (error) {
    return windows.map(() => ({ atoms: [], error }))
  }
}

function join(verdicts: readonly WindowVerdict[]): WindowVerdict {
  const atoms = verdicts.flatMap((each) => (isUnjudged(each) ? each.atoms : each))
  const failed = verdicts.find(isUnjudged)
  return failed ? { atoms, error: failed.error } : atoms
}
