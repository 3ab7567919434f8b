import { parseArgs, type ParseArgsOptionDescriptor, type ParseArgsOptionsConfig } from 'node:util'

import { didYouMean } from '@gatehouse/contract/did-you-mean'
import type { Endpoint } from '@gatehouse/contract/endpoint'

import { type Flag, generalFlags, isPaged, pathFlags } from './flags.ts'
import { UsageError } from './usage-error.ts'

/** What was typed after the command, by flag. */
export type Arguments = {
  isOn: (flag: string) => boolean | undefined
  text: (flag: string) => string | undefined
  texts: (flag: string) => readonly string[]
}

type Values = Record<string, string | boolean | (string | boolean)[] | undefined>

export function readArguments(endpoint: Endpoint, flags: readonly Flag[], args: readonly string[]) {
  const { values, positionals } = parseFlags(args, {
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

/** The parser lets every flag be repeated: lists may be, and the others are refused later instead of ignored. */
function optionOf({ shape }: Flag): ParseArgsOptionDescriptor {
  return shape.kind === 'boolean' ? { type: 'boolean' } : { type: 'string', multiple: true }
}

/** Parses the flags of a command; its errors say what to write instead. */
export function parseFlags<const Options extends ParseArgsOptionsConfig>(
  args: readonly string[],
  options: Options,
) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, allowNegative: true })
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    throw new UsageError(explain(error, options), { cause: error })
  }
}

/** Rewords an error of the parser, which has the flag between its first quotes. */
function explain(error: TypeError & { code?: string }, options: ParseArgsOptionsConfig): string {
  const [, flag = ''] = /'(?:-\w, )?(-[^ ']*)/.exec(error.message) ?? []
  if (error.code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') return unknownFlag(flag, options)
  if (error.message.includes('does not take an argument')) return `${flag} takes no value.`
  if (error.message.includes('argument missing')) return `${flag} needs a value.`
  const isAmbiguous = error.message.includes('argument is ambiguous')
  return isAmbiguous
    ? `${flag} needs a value. Write ${flag}=-5 for one that starts with a dash.`
    : error.message
}

function unknownFlag(flag: string, options: ParseArgsOptionsConfig): string {
  const meant = didYouMean(flag.replace(/^-+/, ''), Object.keys(options))
  return `There is no flag '${flag}'.${meant ? ` Did you mean '--${meant}'?` : ''}`
}

const unnamed = (endpoint: Endpoint, flags: readonly Flag[], values: Values) =>
  pathFlags(endpoint, flags).filter(({ name }) => values[name] === undefined)

function named(positionals: readonly string[], flags: readonly Flag[]): Values {
  const extra = positionals[flags.length]
  if (extra !== undefined) throw new UsageError(`The argument '${extra}' is one too many.`)
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
