import { judgeText } from './judge-text.ts'
import { ReplacementFailure } from './replacement-failure.ts'
import type { ReplacedCall } from './replacement.ts'

/** Throws unless the whole replacement may leave. It is checked before any of it is sent. */
export async function judgeReplacement(text: string, { judge }: ReplacedCall) {
  try {
    await judgeText(text, judge)
  } catch (error) {
    throw new ReplacementFailure('blocked', 'The replacement may not leave.', { cause: error })
  }
}
