import { didYouMean } from '@gatehouse/contract/did-you-mean'
import { Plan } from '@gatehouse/contract/limits'
import { trimmedText } from '@gatehouse/contract/text'

import { parseUsd } from '#credits/money.ts'

import { UsageError } from './command.ts'

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
