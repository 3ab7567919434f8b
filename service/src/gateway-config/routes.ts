import type { FastifyInstance } from 'fastify'

import { serveListGatewayHistory } from './config/list-history.ts'
import { serveReadGatewayConfig } from './config/read-config.ts'
import {
  type SavingDeps,
  serveRestoreGatewayRevision,
  serveSaveGatewayConfig,
} from './config/save-config.ts'
import { serveReadGatewayRollout } from './rollout/read-rollout.ts'
import { serveSimulateGateway, type SimulationDeps } from './simulate/simulate.ts'

/** The endpoints of the policy gateway: its configuration, its history and rollout, and simulations. */
export function servePolicyGateway(app: FastifyInstance, deps: SavingDeps & SimulationDeps) {
  serveReadGatewayConfig(app, deps)
  serveSaveGatewayConfig(app, deps)
  serveListGatewayHistory(app, deps)
  serveRestoreGatewayRevision(app, deps)
  serveReadGatewayRollout(app, deps)
  serveSimulateGateway(app, deps)
}
