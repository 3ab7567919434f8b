import { commands, findCommand } from './command.ts'
import type { Machine } from './execute.ts'
import { helpForAll } from './help.ts'
import { UsageError } from './usage-error.ts'

type Outcome = { exitCode: 0 | 1 | 2; stdout: string; stderr: string }

/** The whole client: arguments in, exit code and output out. Exit code 2 means that the command was wrong. */
export async function run(args: readonly string[], machine: Machine): Promise<Outcome> {
  try {
    const [first, ...rest] = args
    if (first === 'audit') return await audit(rest, machine)
    if (first === 'help' && rest[0] === 'audit') return await audit(['--help'], machine)
    return { exitCode: 0, stdout: await answer(args, machine), stderr: '' }
  } catch (error) {
    if (error instanceof UsageError) {
      const stderr = `error: ${error.message}\n${whereToLook(args[0])}\n`
      return { exitCode: 2, stdout: '', stderr }
    }
    const { explainFailure } = await import('./failure.ts')
    const wantsStack = Boolean(machine.environment['GATEHOUSE_DEBUG'])
    return { exitCode: 1, stdout: '', stderr: `error: ${explainFailure(error, wantsStack)}\n` }
  }
}

async function audit(args: readonly string[], machine: Machine): Promise<Outcome> {
  const { executeAudit } = await import('./audit/audit-command.ts')
  return executeAudit(args, machine)
}

/** Modules that load the contract are imported only by what needs them: `help` answers at once. */
async function answer([first = 'help', ...rest]: readonly string[], machine: Machine) {
  const isHelp = ['help', '--help', '-h'].includes(first)
  const name = isHelp ? rest[0] : first
  if (name === undefined) return helpForAll()
  const command = findCommand(name)
  const { execute } = await import('./execute.ts')
  return execute(command, isHelp ? ['--help'] : rest, machine)
}

function whereToLook(name: string | undefined): string {
  const isCommand = name === 'audit' || commands.some((command) => command.name === name)
  return isCommand
    ? `Run \`gatehouse ${name} --help\` for its flags.`
    : 'Run `gatehouse help` for the list of commands.'
}
