import type { FastifyInstance } from 'fastify'

import { serveListGatewayHistory } from './config/list-history.ts'
import { serveReadGatewayConfig } from './config/read-config.ts'
import {
  type SavingDeps,
  serveRestoreGatewayRevision,
  serveSaveGatewayConfig,
} from './config/save-config.ts'
import { serveCreateGuardrail } from './guardrails/create-guardrail.ts'
import { serveDeleteGuardrail } from './guardrails/delete-guardrail.ts'
import { serveListGuardrails, serveRetrieveGuardrail } from './guardrails/read-guardrails.ts'
import type { GuardrailSavingDeps } from './guardrails/save-guardrail.ts'
import { serveTestGuardrail, type TestingDeps } from './guardrails/test-guardrail.ts'
import { serveUpdateGuardrail } from './guardrails/update-guardrail.ts'
import {
  serveApproveGatewayProposal,
  serveWithdrawGatewayProposal,
} from './proposals/decide-proposal.ts'
import { serveCreateGatewayProposal } from './proposals/propose.ts'
import {
  serveListGatewayProposals,
  serveRetrieveGatewayProposal,
} from './proposals/read-proposals.ts'
import { serveReadGatewayRollout } from './rollout/read-rollout.ts'
import { serveSimulateGateway, type SimulationDeps } from './simulate/simulate.ts'

type Deps = SavingDeps & SimulationDeps & GuardrailSavingDeps & TestingDeps

/** The endpoints of the policy gateway: its configuration, its history and rollout, simulations, and guardrails. */
export function servePolicyGateway(app: FastifyInstance, deps: Deps) {
  serveReadGatewayConfig(app, deps)
  serveSaveGatewayConfig(app, deps)
  serveListGatewayHistory(app, deps)
  serveRestoreGatewayRevision(app, deps)
  serveReadGatewayRollout(app, deps)
  serveSimulateGateway(app, deps)
  serveListGuardrails(app, deps)
  serveCreateGuardrail(app, deps)
  serveRetrieveGuardrail(app, deps)
  serveUpdateGuardrail(app, deps)
  serveDeleteGuardrail(app, deps)
  serveTestGuardrail(app, deps)
  serveListGatewayProposals(app, deps)
  serveCreateGatewayProposal(app, deps)
  serveRetrieveGatewayProposal(app, deps)
  serveApproveGatewayProposal(app, deps)
  serveWithdrawGatewayProposal(app, deps)
}
