import { readCredits } from '@gatehouse/contract/credits'
import type { FastifyInstance } from 'fastify'

import { toSafeNumber, toUsd } from '#credits/money.ts'
import { bind } from '#http/bind.ts'

import type { BalanceReader } from './balance-reader.ts'

export type ReadCreditsDeps = { balances: Pick<BalanceReader, 'read'>; isPrepaid: boolean }

/** `GET /v1/credits`, for callers of models. */
export function serveReadCredits(app: FastifyInstance, deps: ReadCreditsDeps) {
  bind(app, readCredits, (_, { principal }) => readBalance(deps, principal.organizationId))
}

/** The balance as both endpoints answer it: dollars, and the credits that are left, if calls are paid from them. */
export async function readBalance(
  { balances, isPrepaid }: ReadCreditsDeps,
  organizationId: string,
) {
  const { total, used, posted } = await balances.read(organizationId)
  return {
    data: {
      total_credits: toUsd(total),
      total_usage: toUsd(used),
      remaining_credits: isPrepaid ? toSafeNumber(posted) : null,
    },
  }
}
