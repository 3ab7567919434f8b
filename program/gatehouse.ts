#!/usr/bin/env node
import { prepareService } from './prepare-service.ts'
import { describeRelease } from './release.ts'
import { useCompileCache } from './use-compile-cache.ts'

// The command `gatehouse`: the programs of the service, and the client. Each is loaded only when it is asked for.

const usages = {
  serve: `Usage: gatehouse serve

Runs the service until it is stopped, with the roles in ROLES: api, worker, or both. The settings are environment
variables; docs/operations.md lists them.
`,
  migrate: `Usage: gatehouse migrate

Applies the migrations that the database of DATABASE_URL lacks, and exits. Any number may run at the same time.
`,
} as const

/** Only a supervisor of several processes adds it. */
const supervisedArgument = '--supervised'

async function run([command, ...args]: readonly string[]): Promise<unknown> {
  const [first = ''] = args
  // `gatehouse help serve` is `gatehouse serve --help`.
  if (command === 'help' && ['serve', 'migrate', 'operator'].includes(first)) {
    process.argv.splice(2, 2, first, '--help')
    return run([first, '--help'])
  }
  if (command === '--version') return void process.stdout.write(`${describeRelease()}\n`)
  if (command === 'serve' || command === 'migrate') {
    const isSupervised = command === 'serve' && first === supervisedArgument
    const further = isSupervised ? args[1] : args[0]
    if (further === '--help' || further === '-h') return void process.stdout.write(usages[command])
    if (further !== undefined) return refuse(command, further)
  }
  useCompileCache()
  switch (command) {
    case 'serve':
      prepareService()
      return import('@gatehouse/service/main')
    case 'migrate':
      return import('@gatehouse/service/migrate')
    case 'operator':
      process.argv.splice(2, 1)
      return import('@gatehouse/service/operator')
    default:
      return import('@gatehouse/cli/main')
  }
}

function refuse(command: keyof typeof usages, argument: string) {
  process.stderr.write(`${command}: there is no option '${argument}'.\n${usages[command]}`)
  process.exitCode = 2
}

await run(process.argv.slice(2))
