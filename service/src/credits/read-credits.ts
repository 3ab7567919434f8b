import { readCredits } from '@gatehouse/contract/credits'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'

import { toCount, toUsd } from './amounts-in-json.ts'
import type { BalanceCopies } from './balance-copies.ts'

export type ReadCreditsTools = { balances: Pick<BalanceCopies, 'read'> }

export function serveReadCredits(app: FastifyInstance, { balances }: ReadCreditsTools) {
  bind(app, readCredits, async (_, { principal: { organizationId } }) => {
    const { total, used, remaining } = await balances.read(organizationId)
    return {
      data: {
        total_credits: toUsd(total),
        total_usage: toUsd(used),
        remaining_credits: toCount(remaining),
      },
    }
  })
}
