import { readCredits } from '@gatehouse/contract/credits'
import type { FastifyInstance } from 'fastify'

import { toSafeNumber, toUsd } from '#credits/money.ts'
import { bind } from '#http/bind.ts'

import type { BalanceReader } from './balance-reader.ts'

export type ReadCreditsDeps = { balances: Pick<BalanceReader, 'read'> }

/** `GET /v1/credits`, for callers of models. */
export function serveReadCredits(app: FastifyInstance, { balances }: ReadCreditsDeps) {
  bind(app, readCredits, (_, { principal }) => readBalance(balances, principal.organizationId))
}

/** The balance as both endpoints answer it: dollars, and the credits that are left. */
export async function readBalance(balances: ReadCreditsDeps['balances'], organizationId: string) {
  const { total, used, remaining } = await balances.read(organizationId)
  return {
    data: {
      total_credits: toUsd(total),
      total_usage: toUsd(used),
      remaining_credits: toSafeNumber(remaining),
    },
  }
}
