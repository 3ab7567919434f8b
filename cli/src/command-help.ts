import type { Endpoint } from '@gatehouse/contract/endpoint'

import { generalFlagsOf } from './arguments.ts'
import type { Command } from './command.ts'
import { type Flag, flagsOf, type generalFlags, pathFlags } from './flags.ts'
import type { Shape } from './member.ts'
import { aligned, wrapped } from './output/text-columns.ts'
import { keyVariableFor } from './settings.ts'

/** The help of one command: its flags, its permission and its key. */
export function helpFor({ name, summary }: Command, endpoint: Endpoint): string {
  const flags = flagsOf(endpoint)
  const path = pathFlags(endpoint, flags).map((flag) => `<${flag.name}>`)
  const lines = [
    `${summary}.`,
    '',
    ['Usage: gatehouse', name, ...path, '[flags]'].join(' '),
    '',
    `${needOf(endpoint)} The key comes from ${keyVariableFor(endpoint.credentials)}.`,
    ...(flags.length > 0 ? ['', 'Flags:', ...indented(aligned(flags.flatMap(rowsOf)))] : []),
    '',
    'General flags:',
    ...indented(aligned(generalRows(endpoint))),
  ]
  return `${lines.join('\n')}\n`
}

const needOf = ({ permission, orPermission }: Endpoint) =>
  permission === 'any'
    ? 'Needs no permission.'
    : `Needs the permission ${permission}${orPermission ? ` (or ${orPermission.permission} ${orPermission.when})` : ''}.`

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
  all: 'read all pages, up to 10,000 items; --limit is then the size of a page',
  body: 'the whole body as JSON, or @file; other flags replace its members',
  'idempotency-key':
    'a command that is repeated with the same key takes effect once; random by default',
  url: 'the address of the service, instead of GATEHOUSE_URL',
  'key-file': 'a file that holds the key, instead of the environment variable',
  help: 'show this help',
} as const satisfies Record<keyof typeof generalFlags, string>

function generalRows(endpoint: Endpoint): string[][] {
  const has = generalFlagsOf(endpoint)
  return Object.entries(generalMeaning)
    .filter(([name]) => name in has)
    .map(([name, meaning]) => [`--${name}`, meaning])
}
