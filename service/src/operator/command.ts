import type { HashKey } from '#access/secret.ts'
import type { Announce } from '#audit/announce.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import type { SecretBox } from '#platform/secrets.ts'

/** The flags that take a value. `--json` and `--help` belong to every command. */
export const flags = [
  'name',
  'after',
  'plan',
  'id',
  'payment',
  'usd',
  'project',
  'key',
  'email',
  'organization',
  'role',
  'requests-per-minute',
  'requests-per-day',
  'tokens-per-minute',
  'tokens-per-day',
  'concurrent-requests',
] as const
export type Flag = (typeof flags)[number]

export type CommandArguments = {
  /** Empty if the command takes none, or if an optional one was left out. */
  organizationId: string
  values: Readonly<Partial<Record<Flag, string | undefined>>>
}

export type OperatorDeps = {
  db: Db
  /** Whose statements may take as long as they need; to be destroyed after use. */
  openPatientDb: () => Db
  now: Clock
  hashKey: HashKey
  secretBox: SecretBox
  announce: Announce
  /** Where browsers find the gateway; undefined: there is no sign-in. */
  publicUrl: string | undefined
  /** Whether links of the operator sign in. */
  isWithKeys: boolean
}

export type CommandOutput = {
  /** Printed as JSON, or as one line for each member. */
  result: object
  /** Printed instead of `result` unless JSON is asked for. */
  text?: string
  /** What failed although the command has done its main work; the exit code is then 1. */
  failure?: string
  exitCode?: 0 | 1
}

export type Command = {
  synopsis: string
  /** Lines of the help. */
  help: readonly string[]
  organizationId: 'required' | 'optional' | 'none'
  required: readonly Flag[]
  optional: readonly Flag[]
  /** It makes keys or seals secrets: it is refused until MASTER_KEYS is known to be right. */
  needsProvedKey?: boolean
  /** Checks the arguments before anything is connected; what it returns runs the command. */
  prepare(args: CommandArguments): (deps: OperatorDeps) => Promise<CommandOutput>
}

/** Commands by their topic and name: `organizations` and `create`. A topic that is a command itself has it under the empty name. */
export type Topics = Readonly<Record<string, Readonly<Record<string, Command>>>>

/** The arguments are wrong. */
export class UsageError extends Error {}
