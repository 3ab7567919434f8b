import { CallFailed } from '@gatehouse/contract/client'

import { Unanswered, Unsettled } from './call.ts'
import type { Flag, Part } from './flags.ts'
import { withoutControls } from './output/text-columns.ts'

/** A command whose call failed, with the flags that its parameters came from. */
export class CommandFailed extends Error {
  readonly flags: readonly Flag[]

  constructor(cause: unknown, flags: readonly Flag[]) {
    super('The command failed.', { cause })
    this.flags = flags
  }
}

/** One line or a few for a person. The stack of an error that nobody expected is added where `wantsStack` asks for it. */
export function explainFailure(error: unknown, wantsStack: boolean): string {
  const isOfCommand = error instanceof CommandFailed
  const reason = isOfCommand ? error.cause : error
  const explained = explain(reason, isOfCommand ? error.flags : [])
  const stack = wantsStack && reason instanceof Error ? reason.stack : undefined
  return stack === undefined ? explained : `${explained}\n${stack}`
}

function explain(error: unknown, flags: readonly Flag[]): string {
  if (error instanceof Unsettled) return `${explain(error.cause, flags)}\n${adviceFor(error)}`
  if (error instanceof CallFailed) {
    return withoutControls(`${error.message} (${detailsOf(error, flags)})`)
  }
  if (error instanceof Unanswered) return withoutControls(error.message)
  const message = withoutControls(error instanceof Error ? error.message : String(error))
  // An error of the system, such as a full disk, explains itself.
  return error instanceof Error && 'syscall' in error ? message : `${message}\n${adviceForBug}`
}

const adviceForBug =
  'That is unexpected. Please report it with the command, and with what GATEHOUSE_DEBUG=1 adds to this message.'

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
