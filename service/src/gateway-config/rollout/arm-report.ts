import { type GatewayArmReport, gatewayDecisions } from '@gatehouse/contract/policy-gateway/gateway'

import type { CountRow } from './decision-count-store.ts'
import { wilsonInterval } from './wilson.ts'

const arms = ['canary', 'shadow', 'enforced'] as const

/** What each arm of one organization's rollout has decided. */
export const reportArms = (rows: readonly CountRow[]): GatewayArmReport[] =>
  arms.map((arm) => {
    const ofArm = rows.filter((row) => row.arm === arm)
    const requests = ofArm.reduce((sum, { count }) => sum + count, 0)
    const decisions = gatewayDecisions.map((decision) => {
      const count = ofArm.find((row) => row.decision === decision)?.count ?? 0
      const { low, high } = wilsonInterval(count, requests)
      return {
        decision,
        requests: count,
        share: requests === 0 ? null : count / requests,
        share_low: low,
        share_high: high,
      }
    })
    return { arm, requests, decisions }
  })
