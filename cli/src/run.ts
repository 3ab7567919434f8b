import { endpoints } from '@gatehouse/contract/endpoints'

import manifest from '../package.json' with { type: 'json' }
import { type Command, commandsOf } from './command.ts'
import { execute, type Machine } from './execute.ts'
import { failureOf } from './failure.ts'
import { helpFor, helpForAll } from './help.ts'
import { UsageError } from './usage-error.ts'

type Outcome = { exitCode: 0 | 1 | 2; stdout: string; stderr: string }

/** The whole client: what was typed becomes what is printed. */
export async function run(args: readonly string[], machine: Machine): Promise<Outcome> {
  const commands = commandsOf(endpoints)
  try {
    return { exitCode: 0, stdout: await answerTo(args, commands, machine), stderr: '' }
  } catch (error) {
    const isKnown = commands.some(({ name }) => name === args[0])
    const failure = failureOf(error, isKnown ? `gatehouse ${args[0]} --help` : 'gatehouse help')
    return { exitCode: failure.exitCode, stdout: '', stderr: failure.text }
  }
}

async function answerTo(args: readonly string[], commands: readonly Command[], machine: Machine) {
  const [first = 'help', ...rest] = args
  if (first === '--version') return `${manifest.version}\n`
  if (!['help', '--help', '-h'].includes(first))
    return execute(named(first, commands), rest, machine)
  return rest[0] === undefined ? helpForAll(commands) : helpFor(named(rest[0], commands))
}

function named(name: string, commands: readonly Command[]): Command {
  const command = commands.find((one) => one.name === name)
  if (!command) throw new UsageError(`There is no command '${name}'.`)
  return command
}
