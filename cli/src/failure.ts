import { CallFailed } from '@gatehouse/contract/client'

import { Unanswered, Unsettled } from './call.ts'
import type { Flag, Part } from './flags.ts'
import { withoutControls } from './text-columns.ts'

/** A command whose call failed, with the flags that its parameters came from. */
export class CommandFailed extends Error {
  readonly flags: readonly Flag[]

  constructor(cause: unknown, flags: readonly Flag[]) {
    super('The command failed.', { cause })
    this.flags = flags
  }
}

export function explainFailure(error: unknown): string {
  return error instanceof CommandFailed ? explain(error.cause, error.flags) : explain(error, [])
}

function explain(error: unknown, flags: readonly Flag[]): string {
  if (error instanceof Unsettled) return `${explain(error.cause, flags)}\n${adviceFor(error)}`
  if (error instanceof CallFailed) {
    return withoutControls(`${error.message} (${detailsOf(error, flags)})`)
  }
  if (error instanceof Unanswered) return withoutControls(error.message)
  // A bug of this client: its stack is needed to fix it.
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

const adviceFor = ({ idempotencyKey }: Unsettled) =>
  `The change may have been made. Repeat the command with --idempotency-key '${idempotencyKey}': it then takes effect only once.`

function detailsOf({ code, param, requestId }: CallFailed, flags: readonly Flag[]): string {
  const flag = param && flagFor(param, flags)
  return [code, flag ?? param, requestId && `request ${requestId}`].filter(Boolean).join(', ')
}

const parts: Readonly<Record<string, Part>> = { path: 'params', query: 'query', body: 'body' }

/** The flag that set a parameter such as `body.revision`; a place inside its value is added: `--tags (body.tags.3)`. */
function flagFor(param: string, flags: readonly Flag[]): string | undefined {
  const [place = '', member, ...inside] = param.split('.')
  const flag = flags.find((one) => one.part === parts[place] && one.member === member)
  if (!flag) return undefined
  return inside.length === 0 ? `--${flag.name}` : `--${flag.name} (${param})`
}
