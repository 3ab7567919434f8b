import { commands } from './command.ts'
import { aligned } from './text-columns.ts'

/** The list of commands. */
export function helpForAll(): string {
  const rows = commands.map(({ name, summary }) => [name, summary])
  const lines = [
    'gatehouse administers a Gatehouse service and calls its models.',
    '',
    'Usage: gatehouse <command> [flags]',
    '',
    'Commands:',
    ...aligned(rows).map((line) => `  ${line}`),
    '',
    'Audit log:',
    ...aligned(auditRows).map((line) => `  ${line}`),
    '',
    'gatehouse <command> --help   shows the flags of a command and the permission it needs',
    'gatehouse --version          shows the version of this client',
    '',
    'Environment:',
    '  GATEHOUSE_URL        the address of the service',
    '  GATEHOUSE_ADMIN_KEY  an administrator key, for /v1/organization',
    '  GATEHOUSE_API_KEY    a project key, for models and credits',
  ]
  return `${lines.join('\n')}\n`
}

/** More than one call each, so they are not derived from the contract. */
const auditRows = [
  ['audit verify', 'Verify audit records offline, from a bundle or from the files of a sink'],
  ['audit export', 'Write the audit records of the organization into a bundle'],
]
