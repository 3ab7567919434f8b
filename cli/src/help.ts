import type { Endpoint } from '@gatehouse/contract/endpoint'

import { generalFlagsOf } from './arguments.ts'
import { type Command, pathFlags } from './command.ts'
import { type Flag, flagsOf, type generalFlags } from './flags.ts'
import type { Shape } from './member.ts'
import { keyVariableFor } from './settings.ts'
import { aligned, wrapped } from './text-columns.ts'

/** All commands there are. */
export function helpForAll(commands: readonly Command[]): string {
  return textOf([
    'gatehouse: administers a Gatehouse service.',
    '',
    'Usage: gatehouse <command> [flags]',
    '',
    'Commands:',
    ...indented(aligned(commands.map(({ name, summary }) => [name, summary]))),
    '',
    'gatehouse <command> --help   shows the flags of a command and the permission it needs',
    'gatehouse --version          shows the version of this client',
    '',
    'GATEHOUSE_URL says where the service is, GATEHOUSE_ADMIN_KEY holds the administrator key.',
  ])
}

/** One command, its flags and what it takes to be allowed to run it. */
export function helpFor({ name, summary, endpoint }: Command): string {
  const flags = flagsOf(endpoint)
  const path = pathFlags(endpoint, flags).map((flag) => `<${flag.name}>`)
  return textOf([
    `${summary}.`,
    '',
    ['Usage: gatehouse', name, ...path, '[flags]'].join(' '),
    '',
    `Needs the permission ${endpoint.permission}. The key comes from ${keyVariableFor(endpoint.credentials)}.`,
    ...(flags.length > 0 ? ['', 'Flags:', ...indented(aligned(flags.flatMap(rowsOf)))] : []),
    '',
    'Also:',
    ...indented(aligned(generalRows(endpoint))),
  ])
}

const textOf = (lines: readonly string[]) => `${lines.join('\n')}\n`
const indented = (lines: readonly string[]) => lines.map((line) => `  ${line}`)

const meaningColumns = 60

function rowsOf(flag: Flag): string[][] {
  const { kind } = flag.shape
  const written = kind === 'boolean' ? `--${flag.name}, --no-${flag.name}` : `--${flag.name}`
  const canBeCleared = flag.shape.isNullable && kind !== 'text'
  const facts = [boundsOf(flag.shape), canBeCleared ? 'or null' : ''].filter(Boolean).join('; ')
  const meaning = [facts && `${facts}.`, flag.description].filter(Boolean).join(' ')
  const [line = '', ...more] = wrapped(meaning, meaningColumns)
  const first = [written, kind, flag.isRequired ? 'required' : 'optional', line]
  return [first, ...more.map((next) => ['', '', '', next])]
}

function boundsOf({ kind, bounds, items }: Shape): string {
  if (kind === 'json') return 'JSON, or @file'
  if (!items) return bounds
  const form = items.kind === 'json' ? 'JSON, or @file' : 'comma separated or repeated'
  return [form, bounds, items.bounds].filter(Boolean).join('; ')
}

const generalMeaning = {
  json: 'print the answer as one line of JSON',
  all: 'follow the pages, up to 10,000 items; --limit is then the size of a page',
  body: 'the whole body as JSON, or @file; other flags replace its members',
  'idempotency-key': 'repeating a command with the same key has one effect; random by default',
  url: 'the address of the service, instead of GATEHOUSE_URL',
  'key-file': 'a file that holds the key, instead of the variable',
  help: 'show this',
} as const satisfies Record<keyof typeof generalFlags, string>

function generalRows(endpoint: Endpoint): string[][] {
  const has = generalFlagsOf(endpoint)
  return Object.entries(generalMeaning)
    .filter(([name]) => name in has)
    .map(([name, meaning]) => [`--${name}`, meaning])
}
