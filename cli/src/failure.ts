import { CallFailed } from '@gatehouse/contract/client'

import { Unanswered, Unsettled } from './call.ts'
import { withoutControls } from './text-columns.ts'
import { UsageError } from './usage-error.ts'

/** What goes to the error stream, and how the process ends: 2 for a wrong command, 1 for the rest. */
export function failureOf(error: unknown, helpCommand: string): { exitCode: 1 | 2; text: string } {
  if (error instanceof UsageError) {
    return {
      exitCode: 2,
      text: `error: ${error.message}\n\`${helpCommand}\` shows what it takes.\n`,
    }
  }
  return { exitCode: 1, text: `error: ${explain(error)}\n` }
}

function explain(error: unknown): string {
  if (error instanceof Unsettled) return `${explain(error.cause)}\n${advice(error)}`
  if (error instanceof CallFailed) return withoutControls(`${error.message} (${detailsOf(error)})`)
  if (error instanceof Unanswered) return withoutControls(error.message)
  // A fault of this client: whoever repairs it needs the place.
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

const advice = ({ idempotencyKey }: Unsettled) =>
  `It may have happened. Repeat it with --idempotency-key '${idempotencyKey}': it will happen once.`

function detailsOf({ code, param, requestId }: CallFailed): string {
  return [code, param, requestId && `request ${requestId}`].filter(Boolean).join(', ')
}
