import { didYouMean } from '@gatehouse/contract/did-you-mean'

// Printed from the contract, which takes long to load: help and misspelled commands do without it.
import operations from './operations.json' with { type: 'json' }
import { UsageError } from './usage-error.ts'

/** What a person types, and the operation of the contract that it calls. */
export type Command = { name: string; operationId: string; summary: string }

/** Every operation that needs a credential is a command; the others are for machines. */
export const commands: readonly Command[] = operations.map(({ id, summary }) => ({
  name: kebabCase(id),
  operationId: id,
  summary,
}))

/** Those of `gatehouse` that run the service, and that this client never sees. */
const serviceCommands = ['serve', 'migrate', 'operator']

export function findCommand(name: string): Command {
  const command = commands.find((one) => one.name === name)
  if (command) return command
  const meant = didYouMean(name, [...commands.map((one) => one.name), ...serviceCommands])
  throw new UsageError(`There is no command '${name}'.${meant ? ` Did you mean '${meant}'?` : ''}`)
}

export function kebabCase(name: string): string {
  return name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1-$2')
    .replaceAll('_', '-')
    .toLowerCase()
}
