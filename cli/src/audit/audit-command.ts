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

const whoFlags = {
  limit: { type: 'string' },
  after: { type: 'string' },
  url: { type: 'string' },
  'key-file': { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const satisfies ParseArgsOptionsConfig

/** The commands about the audit log, which are more than one call: `audit verify`, `audit export` and `audit who`. */
export async function executeAudit(
  [name = '--help', ...args]: readonly string[],
  machine: Machine,
): Promise<Outcome> {
  if (name === 'verify') return verify(args)
  if (name === 'export') return exportBundle(args, machine)
  if (name === 'who') return who(args, machine)
  if (['help', '--help', '-h'].includes(name))
    return printed([verifyHelp, exportHelp, whoHelp].join('\n'))
  throw new UsageError(
    `There is no command 'audit ${name}', only 'audit verify', 'audit export' and 'audit who'.`,
  )
}

const printed = (stdout: string): Outcome => ({ exitCode: 0, stdout, stderr: '' })

async function verify(args: readonly string[]): Promise<Outcome> {
  const { values, positionals } = parseFlags(args, verifyFlags)
  if (values.help) return printed(verifyHelp)
  const [path, extra] = positionals
  if (path === undefined)
    throw new UsageError('The name of a bundle, of a folder or of a proof is missing.')
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

const changesMax = 1000

async function who(args: readonly string[], machine: Machine): Promise<Outcome> {
  const { values, positionals } = parseFlags(args, whoFlags)
  if (values.help) return printed(whoHelp)
  const [policyId, extra] = positionals
  if (!policyId) throw new UsageError('The id of a policy is missing.')
  if (extra !== undefined) throw new UsageError(`The argument '${extra}' is one too many.`)
  const { limit = '100', after, url, 'key-file': keyFile, json = false } = values
  if (!/^[1-9]\d{0,3}$/.test(limit) || Number(limit) > changesMax)
    throw new UsageError(`--limit takes a number from 1 to ${changesMax}, not '${limit}'.`)
  const { whoCommand } = await import('./who/who-command.ts')
  return whoCommand({ policyId, limit: Number(limit), after, url, keyFile, json }, machine)
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
    'Usage: gatehouse audit verify <bundle, folder or proof> [flags]',
    '',
    'A bundle is what `gatehouse audit export` writes; a folder is a copy of what a sink',
    'has stored; a proof is the JSON of `gatehouse read-audit-proof <event id> --json`.',
    'Nothing is sent.',
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

const whoHelp = help(
  [
    'Say who changed a policy, when and how, the newest change first. Also for a deleted policy.',
    '',
    'Usage: gatehouse audit who <policy id> [flags]',
    '',
    'Needs the permission audit.read; with admin_api_keys.read, keys are shown with their',
    'names. The key comes from GATEHOUSE_ADMIN_KEY. Exit code 1: no change is recorded.',
  ],
  [
    ['--limit', 'how many changes are shown at most: 1 to 1000, 100 by default'],
    ['--after', 'the id of an event: only changes before it, as the end of a list says'],
    ['--json', 'print the result as one line of JSON, with everything that has changed'],
    ['--url', 'the address of the service, instead of GATEHOUSE_URL'],
    ['--key-file', 'a file that holds the key, instead of the environment variable'],
    ['--help', 'show this help'],
  ],
)
