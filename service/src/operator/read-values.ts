import { didYouMean } from '@gatehouse/contract/did-you-mean'
import {
  type LimitName,
  type LimitValues,
  organizationLimitNumbers,
  Plan,
} from '@gatehouse/contract/limits'
import { EmailAddress } from '@gatehouse/contract/members/member'
import { Role } from '@gatehouse/contract/role'
import { trimmedText } from '@gatehouse/contract/text'

import { editLimits } from '#access/limit-overrides/own-limits.ts'
import { parseUsd } from '#credits/money.ts'

import { type CommandArguments, type Flag, UsageError } from './command.ts'
import type { LimitsTarget, OperatorEdit } from './limits.ts'

// Values of flags. That a required flag is there has been checked before.

export function readName(name = ''): string {
  const result = trimmedText(1, 80).safeParse(name)
  if (result.success) return result.data
  throw new UsageError('--name takes 1 to 80 characters, for example --name "Example Ltd".')
}

export function readPlan(plan = ''): Plan {
  const result = Plan.safeParse(plan)
  if (result.success) return result.data
  const meant = didYouMean(plan, Plan.options)
  const names = new Intl.ListFormat('en', { type: 'disjunction' }).format(Plan.options)
  throw new UsageError(`--plan takes ${names}.${meant ? ` Did you mean '${meant}'?` : ''}`)
}

export function readRole(role = ''): Role {
  const result = Role.safeParse(role)
  if (result.success) return result.data
  const meant = didYouMean(role, Role.options)
  const names = new Intl.ListFormat('en', { type: 'disjunction' }).format(Role.options)
  throw new UsageError(`--role takes ${names}.${meant ? ` Did you mean '${meant}'?` : ''}`)
}

export function readEmail(email = ''): string {
  const result = EmailAddress.safeParse(email)
  if (result.success) return result.data
  throw new UsageError('--email takes an address, for example --email ada@example.com.')
}

/** In credits. */
export function readAmount(usd = ''): bigint {
  const amount = parseUsd(usd)
  if (amount !== undefined) return amount
  throw new UsageError('--usd takes US dollars with at most six decimals, for example --usd 20.00.')
}

export function readPositiveAmount(usd: string | undefined): bigint {
  const amount = readAmount(usd)
  if (amount > 0n) return amount
  throw new UsageError('--usd takes an amount of more than 0 US dollars.')
}

/** The id of a payment, grant or refund. */
export function readId(flag: 'id' | 'payment', id = ''): string {
  if (id.length >= 1 && id.length <= 200) return id
  throw new UsageError(`--${flag} takes 1 to 200 characters.`)
}

/** The flag of each number. */
export const limitFlags = {
  requests_per_minute: 'requests-per-minute',
  requests_per_day: 'requests-per-day',
  tokens_per_minute: 'tokens-per-minute',
  tokens_per_day: 'tokens-per-day',
  concurrent_requests: 'concurrent-requests',
} as const satisfies Record<LimitName, Flag>

export function readLimitsTarget({ organizationId, values }: CommandArguments): LimitsTarget {
  const { project: projectId, key: keyId } = values
  if (projectId !== undefined && keyId !== undefined) {
    throw new UsageError('--project and --key exclude each other: limits are of one or the other.')
  }
  return {
    organizationId,
    ...(projectId !== undefined && { projectId }),
    ...(keyId !== undefined && { keyId }),
  }
}

/** The limits of an organization that is to be created: all that is not given is the tier's. */
export const readNewLimits = ({ values }: CommandArguments): LimitValues =>
  editLimits({}, readNumbers(values))

/** The numbers that are given; `none` returns to the tier's. */
export function readLimitNumbers({ values }: CommandArguments): OperatorEdit {
  const numbers = readNumbers(values)
  if (Object.keys(numbers).length === 0) {
    const all = Object.values(limitFlags).map((flag) => `--${flag}`)
    throw new UsageError(`Nothing is to be set; give at least one of ${all.join(', ')}.`)
  }
  const isOrganization = values.project === undefined && values.key === undefined
  if (values['tokens-per-day'] !== undefined && !isOrganization) {
    throw new UsageError('--tokens-per-day is a limit of organizations only.')
  }
  return numbers
}

function readNumbers(values: CommandArguments['values']): OperatorEdit {
  const names = Object.keys(limitFlags) as LimitName[]
  const given = names.filter((name) => values[limitFlags[name]] !== undefined)
  return Object.fromEntries(given.map((name) => [name, readLimit(name, values[limitFlags[name]])]))
}

function readLimit(name: LimitName, text = ''): number | null {
  if (text === 'none') return null
  const number = organizationLimitNumbers[name]
  const result = number.safeParse(/^\d+$/.test(text) ? Number(text) : undefined)
  if (result.success) return result.data
  throw new UsageError(
    `--${limitFlags[name]} takes a whole number from ${number.minValue} to ${number.maxValue}, or none for the tier's.`,
  )
}
