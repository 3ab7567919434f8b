import { parseArgs } from 'node:util'

import { didYouMean } from '@gatehouse/contract/did-you-mean'

import {
  type Command,
  type CommandArguments,
  type Flag,
  flags,
  type Topics,
  UsageError,
} from './command.ts'

export type ReadArguments = {
  topic: string
  command: Command
  args: CommandArguments
  isJson: boolean
  isHelp: boolean
}

/** Undefined: the help of all commands is wanted. */
export function readArguments(args: readonly string[], topics: Topics): ReadArguments | undefined {
  const { positionals, values } = parse(args)
  const { json: isJson = false, help: isHelp = false, ...flagValues } = values
  const [topic = '', name = '', ...words] = positionals
  if (topic === '' || topic === 'help' || (isHelp && name === '')) return undefined
  const command = findCommand(topic, name, topics)
  const given: CommandArguments = { organizationId: words[0] ?? '', values: flagValues }
  if (!isHelp) checkArguments(`${topic} ${name}`.trim(), command, { words, given })
  return { topic, command, args: given, isJson, isHelp }
}

function parse(args: readonly string[]) {
  const text = { type: 'string' } as const
  const boolean = { type: 'boolean' } as const
  const options = {
    name: text,
    after: text,
    plan: text,
    id: text,
    payment: text,
    usd: text,
    project: text,
    key: text,
    email: text,
    organization: text,
    role: text,
    'requests-per-minute': text,
    'requests-per-day': text,
    'tokens-per-minute': text,
    'tokens-per-day': text,
    'concurrent-requests': text,
    json: boolean,
    help: { ...boolean, short: 'h' },
  } satisfies Record<Flag | 'json' | 'help', object>
  try {
    return parseArgs({ args: [...args], allowPositionals: true, options })
  } catch (error) {
    if (error instanceof TypeError) throw new UsageError(explainParseError(error))
    throw error
  }
}

/** The flag that the parser complains about stands between its first quotes. */
function explainParseError(error: TypeError & { code?: string }): string {
  const [, flag = ''] = /'(?:-\w, )?(-[^ ']*)/.exec(error.message) ?? []
  if (error.code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') {
    const meant = didYouMean(flag.replace(/^-+/, ''), [...flags, 'json', 'help'])
    return `There is no flag '${flag}'.${meant ? ` Did you mean '--${meant}'?` : ''}`
  }
  if (error.message.includes('argument missing')) return `${flag} needs a value.`
  if (error.message.includes('argument is ambiguous')) {
    return `${flag} needs a value. Write ${flag}=-5 for one that starts with a dash.`
  }
  return error.message
}

function findCommand(topic: string, name: string, topics: Topics): Command {
  const commands = Object.hasOwn(topics, topic) ? topics[topic] : undefined
  if (!commands) throw new UsageError(explainUnknownTopic(topic, topics))
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (command) return command
  const names = Object.keys(commands)
  if (name === '') throw new UsageError(`A command of '${topic}' is missing: ${names.join(', ')}.`)
  const meant = didYouMean(name, names)
  throw new UsageError(
    `There is no command '${topic} ${name}'.${meant ? ` Did you mean '${topic} ${meant}'?` : ''}`,
  )
}

/** `create` alone is a common mistake for `organizations create`. */
function explainUnknownTopic(word: string, topics: Topics): string {
  const full = Object.entries(topics).flatMap(([topic, commands]) =>
    Object.keys(commands).map((name) => ({ name, text: `${topic} ${name}` })),
  )
  const named = full.find(({ name }) => name === word)?.text
  const meant = named ?? didYouMean(word, Object.keys(topics))
  const topicList = new Intl.ListFormat('en', { type: 'disjunction' }).format(Object.keys(topics))
  return `There is no command '${word}'.${meant ? ` Did you mean '${meant}'?` : ` Commands start with ${topicList}.`}`
}

type Given = { words: readonly string[]; given: CommandArguments }

/** A word or flag that a command does not take was meant to do something, so it is refused, not ignored. */
function checkArguments(name: string, command: Command, { words, given }: Given) {
  const { organizationId, required, optional } = command
  const extraWords = words.slice(organizationId === 'none' ? 0 : 1)
  const extraFlags = flags.filter(
    (flag) => given.values[flag] !== undefined && ![...required, ...optional].includes(flag),
  )
  const extra = [...extraWords, ...extraFlags.map((flag) => `--${flag}`)]
  if (extra.length > 0) {
    throw new UsageError(`'${name}' does not take ${extra.map((each) => `'${each}'`).join(', ')}.`)
  }
  const missing = required
    .filter((flag) => given.values[flag] === undefined)
    .map((flag) => `--${flag}`)
  if (organizationId === 'required' && given.organizationId === '') {
    missing.unshift('<organization id>')
  }
  if (missing.length === 0) return
  const verb = missing.length === 1 ? 'is' : 'are'
  const where = missing[0]?.startsWith('<') ? " 'organizations list' shows the ids." : ''
  throw new UsageError(`${new Intl.ListFormat('en').format(missing)} ${verb} missing.${where}`)
}
