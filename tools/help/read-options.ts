import { parseArgs, type ParseArgsConfig } from 'node:util'

/** Ends a command of `./dev` that was called wrongly. */
export function refuse(command: string, message: string): never {
  console.error(`${command}: ${message} ./dev ${command} --help says what it takes.`)
  process.exit(2)
}

/** The arguments of a command of `./dev`. One that it does not take was meant to do something: it is refused, not ignored. */
export function readOptions<const Config extends ParseArgsConfig>(command: string, config: Config) {
  try {
    return parseArgs(config)
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    // Further sentences of the parser are about values that start with a dash, which no command takes.
    const [first = ''] = error.message.split(/\.\s/)
    return refuse(command, `${first}.`)
  }
}
