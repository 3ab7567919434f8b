import { parseArgs } from 'node:util'

import { Plan } from '@gatehouse/contract/limits'
import { trimmedText } from '@gatehouse/contract/text'

import { creditsOf } from '#credits/usd.ts'

export const usage = `Usage: gatehouse operator organizations <command> [--json]

  create --name <name> [--usd <amount>]
                             a new organization; prints its first administrator key once.
                             --usd grants it credits to begin with; credits_granted says
                             whether that succeeded. If not, it ends with 1, and the
                             organization and its key are there all the same
  list [--after <id>]        organizations in order of creation, 100 a page
  show <organization id>     its balance, what it has used and paid, its plan and tier
  suspend <organization id>  every call is refused with 403 within 5 seconds
  reinstate <organization id>
  recover <organization id>  a new administrator key, when all others are lost
  plan <organization id> --plan free|developer|growth|scale
                             what you give; a subscription that gives more stays in force
  payment <organization id> --id <payment id> --usd <amount>
                             adds credits and counts towards the tier; the same id counts once
  grant <organization id> --id <grant id> --usd <amount>
                             adds credits that nobody paid for; the same id counts once
  refund <organization id> --id <refund id> --payment <payment id> --usd <amount>
                             takes back a payment, or part of one; the same id counts once

       gatehouse operator credits <command> [--json]

  reconcile [<organization id>]
                             compares balances and usage with the ledger; fails if they differ

Needs DATABASE_URL and MASTER_KEYS in the environment, as the service does.
`

/** The operator's mistake: shown with the usage. */
export class UsageError extends Error {}

export type Given = {
  organizationId: string
  name?: string
  after?: string
  plan?: string
  id?: string
  payment?: string
  usd?: string
}

export function readArguments(args: readonly string[]) {
  const text = { type: 'string' } as const
  const flag = { type: 'boolean' } as const
  const members = { name: text, after: text, plan: text, id: text, payment: text, usd: text }
  try {
    const options = { ...members, json: flag, help: flag }
    return parseArgs({ args: [...args], allowPositionals: true, options })
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : 'The arguments are wrong.')
  }
}

const ofOrganization = { positionals: 1, options: [] as string[] }
const posting = { positionals: 1, options: ['id', 'usd'] }

/** How many more words each command takes, and which options. */
const commands: Readonly<Record<string, Readonly<Record<string, typeof posting>>>> = {
  organizations: {
    create: { positionals: 0, options: ['name', 'usd'] },
    list: { positionals: 0, options: ['after'] },
    show: ofOrganization,
    suspend: ofOrganization,
    reinstate: ofOrganization,
    recover: ofOrganization,
    plan: { positionals: 1, options: ['plan'] },
    payment: posting,
    grant: posting,
    refund: { positionals: 1, options: [...posting.options, 'payment'] },
  },
  credits: { reconcile: ofOrganization },
}

/** A word or an option that a command does not know was meant to do something: it is not passed over. */
export function refuseSurplus({ positionals, values }: ReturnType<typeof readArguments>) {
  const [topic = '', command = '', ...words] = positionals
  const ofTopic = Object.hasOwn(commands, topic) ? commands[topic] : undefined
  if (!ofTopic) throw new UsageError(`There is no topic '${topic}'.`)
  const takes = Object.hasOwn(ofTopic, command) ? ofTopic[command] : undefined
  if (!takes) throw new UsageError(`There is no command '${command}'.`)
  const others = Object.keys(values).filter((name) => ![...takes.options, 'json'].includes(name))
  const surplus = [...words.slice(takes.positionals), ...others.map((name) => `--${name}`)]
  if (surplus.length === 0) return
  const named = surplus.map((each) => `'${each}'`).join(', ')
  throw new UsageError(`'${topic} ${command}' does not take ${named}.`)
}

export function readName(name: string | undefined): string {
  const result = trimmedText(1, 80).safeParse(name)
  if (result.success) return result.data
  throw new UsageError('Give the organization a name of 1 to 80 characters: --name "Example Ltd"')
}

export function readOrganizationId({ organizationId }: Given): string {
  if (organizationId) return organizationId
  throw new UsageError('Name the organization: its id, as `list` shows it.')
}

export function readPlan({ plan }: Given): Plan {
  const result = Plan.safeParse(plan)
  if (result.success) return result.data
  throw new UsageError(`Name the plan: --plan ${Plan.options.join('|')}`)
}

/** Credits to begin with. */
export function readWelcome({ usd }: Given): bigint {
  const amount = usd === undefined ? 0n : creditsOf(usd)
  if (amount !== undefined) return amount
  throw new UsageError('Say how many credits to begin with, in US dollars: --usd 20.00')
}

/** `what` it is, by its own id and with an amount that is a whole number of credits. */
export function readPosting(what: 'payment' | 'grant' | 'refund', { id, usd = '' }: Given) {
  const amount = creditsOf(usd) ?? 0n
  if (isPostingId(id) && amount > 0n) return { id, amount }
  throw new UsageError(
    `Say which ${what} and how much: --id <${what} id, of at most 200 characters> --usd 20.00`,
  )
}

export function readRefund(given: Given) {
  const { payment } = given
  if (isPostingId(payment)) return { ...readPosting('refund', given), paymentId: payment }
  throw new UsageError('Say which payment is refunded: --payment <payment id>')
}

const isPostingId = (id: string | undefined): id is string =>
  id !== undefined && id.length >= 1 && id.length <= 200
