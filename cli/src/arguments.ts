import { parseArgs, type ParseArgsOptionDescriptor, type ParseArgsOptionsConfig } from 'node:util'

import type { Endpoint } from '@gatehouse/contract/endpoint'

import { isPaged, pathFlags } from './command.ts'
import { type Flag, generalFlags } from './flags.ts'
import { UsageError } from './usage-error.ts'

/** What was typed after the command, by flag. */
export type Arguments = {
  isOn: (flag: string) => boolean | undefined
  text: (flag: string) => string | undefined
  texts: (flag: string) => readonly string[]
}

type Values = Record<string, string | boolean | (string | boolean)[] | undefined>

export function readArguments(endpoint: Endpoint, flags: readonly Flag[], args: readonly string[]) {
  const { values, positionals } = parsed(args, {
    ...Object.fromEntries(flags.map((flag) => [flag.name, optionOf(flag)])),
    ...generalFlagsOf(endpoint),
  })
  return accessTo({ ...values, ...named(positionals, unnamed(endpoint, flags, values)) })
}

/** The general flags that have a meaning for this endpoint. */
export function generalFlagsOf(endpoint: Endpoint): ParseArgsOptionsConfig {
  const { all, body, 'idempotency-key': idempotencyKey, ...always } = generalFlags
  return {
    ...always,
    ...(isPaged(endpoint) && { all }),
    ...(endpoint.body && { body }),
    ...(endpoint.isIdempotent && { 'idempotency-key': idempotencyKey }),
  }
}

/** Everything may be repeated here: a list is, and for the rest it is refused rather than ignored. */
function optionOf({ shape }: Flag): ParseArgsOptionDescriptor {
  return shape.kind === 'boolean' ? { type: 'boolean' } : { type: 'string', multiple: true }
}

function parsed(args: readonly string[], options: ParseArgsOptionsConfig) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, allowNegative: true })
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    throw new UsageError(complaintIn(error), { cause: error })
  }
}

/** After an unknown flag comes advice about arguments that no command of ours takes. */
function complaintIn(error: TypeError): string {
  const isUnknown = 'code' in error && error.code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION'
  const complaint = isUnknown ? error.message.replace(/\. To specify .*/s, '') : error.message
  return complaint.endsWith('.') ? complaint : `${complaint}.`
}

const unnamed = (endpoint: Endpoint, flags: readonly Flag[], values: Values) =>
  pathFlags(endpoint, flags).filter(({ name }) => values[name] === undefined)

function named(positionals: readonly string[], flags: readonly Flag[]): Values {
  const extra = positionals[flags.length]
  if (extra !== undefined) throw new UsageError(`'${extra}' is one argument too many.`)
  return Object.fromEntries(positionals.map((text, index) => [flags[index]?.name, [text]]))
}

function accessTo(values: Values): Arguments {
  const texts = (flag: string) =>
    [values[flag] ?? []].flat().filter((one) => typeof one === 'string')
  return {
    isOn: (flag) => (typeof values[flag] === 'boolean' ? values[flag] : undefined),
    text: (flag) => texts(flag).at(-1),
    texts,
  }
}
