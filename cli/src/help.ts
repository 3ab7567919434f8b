import { commands } from './command.ts'
import { aligned } from './output/text-columns.ts'

/** The list of commands. */
export function helpForAll(): string {
  const rows = commands.map(({ name, summary }) => [name, summary])
  const lines = [
    'gatehouse runs a Gatehouse service, administers it and calls its models.',
    '',
    'Usage: gatehouse <command> [flags]',
    '',
    'Commands:',
    ...aligned(rows).map((line) => `  ${line}`),
    '',
    'Audit log:',
    ...aligned(auditRows).map((line) => `  ${line}`),
    '',
    'Service:',
    ...aligned(serviceRows).map((line) => `  ${line}`),
    '',
    'gatehouse <command> --help   shows the flags of a command and the permission it needs',
    'gatehouse --version          shows the release: version, commit, newest migration',
    '',
    'Environment:',
    '  GATEHOUSE_URL        the address of the service',
    '  GATEHOUSE_ADMIN_KEY  an administrator key, for /v1/organization',
    '  GATEHOUSE_API_KEY    a project key, for models and credits',
    '  GATEHOUSE_DEBUG      if set, unexpected errors are shown with their stack',
    '',
    'Lists fit the terminal, or 80 columns; --json prints every member for scripts.',
  ]
  return `${lines.join('\n')}\n`
}

/** Commands for operators: they need the settings of the service in the environment, and a connection to its database. */
const serviceRows = [
  ['serve', 'Run the service'],
  ['migrate', 'Apply the migrations to the database of DATABASE_URL'],
  [
    'operator',
    'Organizations, plans, payments, limits, audit; without arguments, lists its commands',
  ],
]

/** More than one call each, so they are not derived from the contract. */
const auditRows = [
  ['audit verify', 'Verify audit records offline: a bundle, the files of a sink, or one proof'],
  ['audit export', 'Write the audit records of the organization into a bundle'],
  ['audit who', 'Say who changed a policy, when and how'],
]
