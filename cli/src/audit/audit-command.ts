import type { ParseArgsOptionsConfig } from 'node:util'

import { parseFlags } from '../arguments.ts'
import type { Machine } from '../execute.ts'
import { aligned } from '../output/text-columns.ts'
import { UsageError } from '../usage-error.ts'
import { type Outcome, verifyCommand } from './verify-command.ts'

const verifyFlags = {
  keys: { type: 'string' },
  organization: { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const satisfies ParseArgsOptionsConfig

const exportFlags = {
  out: { type: 'string' },
  from: { type: 'string' },
  to: { type: 'string' },
  url: { type: 'string' },
  'key-file': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const satisfies ParseArgsOptionsConfig

/** The commands about the audit log, which are more than one call: `audit verify` and `audit export`. */
export async function executeAudit(
  [name = '--help', ...args]: readonly string[],
  machine: Machine,
): Promise<Outcome> {
  if (name === 'verify') return verify(args)
  if (name === 'export') return exportBundle(args, machine)
  if (['help', '--help', '-h'].includes(name)) return printed(`${verifyHelp}\n${exportHelp}`)
  throw new UsageError(
    `There is no command 'audit ${name}', only 'audit verify' and 'audit export'.`,
  )
}

const printed = (stdout: string): Outcome => ({ exitCode: 0, stdout, stderr: '' })

async function verify(args: readonly string[]): Promise<Outcome> {
  const { values, positionals } = parseFlags(args, verifyFlags)
  if (values.help) return printed(verifyHelp)
  const [path, extra] = positionals
  if (path === undefined) throw new UsageError('The name of a bundle or of a folder is missing.')
  if (extra !== undefined) throw new UsageError(`The argument '${extra}' is one too many.`)
  const { keys, organization, json = false } = values
  return verifyCommand({ path, keys, organization, json })
}

async function exportBundle(args: readonly string[], machine: Machine): Promise<Outcome> {
  const { values, positionals } = parseFlags(args, exportFlags)
  if (values.help) return printed(exportHelp)
  const [extra] = positionals
  if (extra !== undefined) throw new UsageError(`The argument '${extra}' is one too many.`)
  const { out, from, to, url, 'key-file': keyFile } = values
  if (out === undefined) throw new UsageError('--out is missing: the name of the file to write.')
  const { exportCommand } = await import('./export-command.ts')
  const sizes = { from: sizeFrom('from', from), to: sizeFrom('to', to) }
  return printed(await exportCommand({ out, ...sizes, url, keyFile }, machine))
}

function sizeFrom(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (!/^\d{1,15}$/.test(text))
    throw new UsageError(`--${flag} takes the size of a checkpoint, not '${text}'.`)
  return Number(text)
}

const help = (lines: readonly string[], flags: readonly string[][]) =>
  `${[...lines, '', 'Flags:', ...aligned(flags).map((line) => `  ${line}`)].join('\n')}\n`

const verifyHelp = help(
  [
    'Verify audit records offline, and name the first that is missing, changed or out of order.',
    '',
    'Usage: gatehouse audit verify <bundle or folder> [flags]',
    '',
    'A bundle is what `gatehouse audit export` writes; a folder is a copy of what a sink has stored. Nothing is sent.',
    'Exit code 0: verified. 1: not verified. 2: the command was wrong.',
  ],
  [
    ['--keys', 'the trusted keys: the JSON of /.well-known/gatehouse-audit-keys.json'],
    ['--organization', 'the organization to verify, where a folder has records of several'],
    ['--json', 'print the result as one line of JSON'],
    ['--help', 'show this help'],
  ],
)

const exportHelp = help(
  [
    'Write the audit records of the organization into a bundle that can be verified offline.',
    '',
    'Usage: gatehouse audit export --out <file> [flags]',
    '',
    'Needs the permission audit.read. The key comes from GATEHOUSE_ADMIN_KEY.',
  ],
  [
    ['--out', 'the file to write; it appears when it is complete'],
    ['--from', 'the size of a checkpoint: only records after it; 0 by default'],
    ['--to', 'the size of a checkpoint: only records up to it; the newest by default'],
    ['--url', 'the address of the service, instead of GATEHOUSE_URL'],
    ['--key-file', 'a file that holds the key, instead of the environment variable'],
    ['--help', 'show this help'],
  ],
)
