import { expect, test } from 'vitest'

import { UsageError } from './command.ts'
import { topics } from './commands.ts'
import { helpForAll } from './help.ts'
import { readArguments } from './read-arguments.ts'

/** As the command does: what is wrong with the values is found when it is prepared. */
function read(...args: string[]) {
  const given = readArguments(args, topics)
  if (given && !given.isHelp) given.command.prepare(given.args)
  return given
}

function complaint(...args: string[]): string {
  try {
    read(...args)
  } catch (error) {
    if (error instanceof UsageError) return error.message
    throw error
  }
  throw new Error('nothing is wrong')
}

test.each([
  ['organizations create', '--name is missing.'],
  ['organizations payment org_1', '--id and --usd are missing.'],
  ['organizations payment org_1 --id a', '--usd is missing.'],
  ['organizations grant org_1 --usd 5', '--id is missing.'],
  ['organizations refund org_1', '--id, --payment, and --usd are missing.'],
  ['organizations refund org_1 --id a --usd 5', '--payment is missing.'],
  ['organizations plan org_1', '--plan is missing.'],
  ['members invite org_1', '--email and --role are missing.'],
  ['members set-role org_1 --role viewer', '--email is missing.'],
  ['members suspend org_1', '--email is missing.'],
  ['organizations suspend', "<organization id> is missing. 'organizations list' shows the ids."],
])('%s: %s', (line, message) => {
  expect(complaint(...line.split(' '))).toBe(message)
})

test.each([
  [
    'organizations lsit',
    "There is no command 'organizations lsit'. Did you mean 'organizations list'?",
  ],
  ['organizations destroy', "There is no command 'organizations destroy'."],
  ['organizations constructor', "There is no command 'organizations constructor'."],
  ['organisations list', "There is no command 'organisations'. Did you mean 'organizations'?"],
  ['create --name x', "There is no command 'create'. Did you mean 'organizations create'?"],
  ['reconcile', "There is no command 'reconcile'. Did you mean 'credits reconcile'?"],
  [
    'planets list',
    "There is no command 'planets'. Commands start with organizations, members, sign-in-link, credits, policies, audit, secrets, or limits.",
  ],
  ['credits', "A command of 'credits' is missing: reconcile."],
  ['organizations create --nmae x', "There is no flag '--nmae'. Did you mean '--name'?"],
  ['organizations create --colour x', "There is no flag '--colour'."],
  ['organizations list --jsno', "There is no flag '--jsno'. Did you mean '--json'?"],
  [
    'members invite org_1 --email ada --role viewer',
    '--email takes an address, for example --email ada@example.com.',
  ],
  [
    'members set-role org_1 --email ada@example.com --role onwer',
    "--role takes owner, admin, policy_publisher, policy_editor, auditor, billing, developer, or viewer. Did you mean 'owner'?",
  ],
  [
    'organizations plan org_1 --plan grwoth',
    "--plan takes free, developer, growth, or scale. Did you mean 'growth'?",
  ],
])('%s: %s', (line, message) => {
  expect(complaint(...line.split(' '))).toBe(message)
})

test.each([
  ['--name', '--name needs a value.'],
  ['--name=', '--name takes 1 to 80 characters, for example --name "Example Ltd".'],
  [
    '--name x --usd 1,5',
    '--usd takes US dollars with at most six decimals, for example --usd 20.00.',
  ],
  ['--name x --usd -5', '--usd needs a value. Write --usd=-5 for one that starts with a dash.'],
])('organizations create %s: %s', (line, message) => {
  expect(complaint('organizations', 'create', ...line.split(' '))).toBe(message)
})

test.each([
  ['--id a --usd 0', '--usd takes an amount of more than 0 US dollars.'],
  ['--id= --usd 5', '--id takes 1 to 200 characters.'],
  [`--id ${'x'.repeat(201)} --usd 5`, '--id takes 1 to 200 characters.'],
])('organizations grant org_1 %s: %s', (line, message) => {
  expect(complaint('organizations', 'grant', 'org_1', ...line.split(' '))).toBe(message)
})

test.each([
  ['set', "<organization id> is missing. 'organizations list' shows the ids."],
  [
    'set org_1',
    'Nothing is to be set; give at least one of --requests-per-minute, --requests-per-day, --tokens-per-minute, --tokens-per-day, --concurrent-requests.',
  ],
  [
    'set org_1 --requests-per-minute 0',
    "--requests-per-minute takes a whole number from 1 to 1000000000, or none for the tier's.",
  ],
  [
    'set org_1 --concurrent-requests 1e3',
    "--concurrent-requests takes a whole number from 1 to 100000, or none for the tier's.",
  ],
  [
    'set org_1 --project a --key b --requests-per-day 5',
    '--project and --key exclude each other: limits are of one or the other.',
  ],
  ['set org_1 --key b --tokens-per-day 5', '--tokens-per-day is a limit of organizations only.'],
  ['set org_1 --usd 5', "'limits set' does not take '--usd'."],
  ['clear org_1 --requests-per-day 5', "'limits clear' does not take '--requests-per-day'."],
  [
    'clear org_1 --project a --key b',
    '--project and --key exclude each other: limits are of one or the other.',
  ],
])('limits %s: %s', (line, message) => {
  expect(complaint('limits', ...line.split(' '))).toBe(message)
})

test('help is for all commands or for one, also where arguments are missing', () => {
  for (const args of [[], ['help'], ['--help'], ['-h'], ['organizations', '--help']]) {
    expect(read(...args)).toBeUndefined()
  }
  expect(read('organizations', 'payment', '--help')).toMatchObject({
    isHelp: true,
    command: topics['organizations']!['payment'],
  })
})

test('help names every command with all of its flags, and fits a terminal', () => {
  const help = helpForAll(topics)
  for (const [name, { synopsis, required, optional }] of Object.values(topics).flatMap(
    Object.entries<(typeof topics)[string][string]>,
  )) {
    expect(help).toContain(`  ${synopsis}\n`)
    if (name !== '') expect(synopsis.split(' ')[0]).toBe(name)
    for (const flag of required) expect(synopsis).toMatch(new RegExp(`(?<!\\[)--${flag} <`))
    for (const flag of optional) expect(synopsis).toContain(`[--${flag} <`)
  }
  expect(Math.max(...help.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(100)
})
