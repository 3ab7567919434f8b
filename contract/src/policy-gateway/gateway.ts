import { z } from 'zod'

import { gatewayEndpoint } from '../endpoint.ts'
import { listOf, ListQuery } from '../list.ts'
import { changesManaged, exemptFromSets, ManagedBy } from '../managed.ts'
import { ifMatchOf } from '../organization/if-match.ts'
import { TextPlace } from '../policy-evaluation.ts'
import { AnyId, idOf, storedText } from '../text.ts'
import { glassBody, glassQuery } from '../two-persons/break-glass.ts'
import { GatewayConfig, GivenGatewayConfig } from './config.ts'
import { ProcessCounts } from './process-counts.ts'

/** RFC 3339 in UTC, to the second. */
export const Moment = z.iso.datetime({ precision: 0 })

const Revision = z
  .int()
  .min(0)
  .max(2_147_483_647)
  .describe('Rises with every change that is saved; 0 before the first.')

/** The configuration of an organization, and how old it is. */
const GatewayState = z
  .object({
    config: GatewayConfig,
    revision: Revision,
    managed_by: ManagedBy,
    created_at: Moment.nullable().describe('null: none was saved yet.'),
    updated_at: Moment.nullable(),
  })
  .meta({ id: 'GatewayState' })
export type GatewayState = z.infer<typeof GatewayState>

const SavedGatewayState = GatewayState.extend({
  warnings: z
    .array(z.string())
    .max(100)
    .describe('What was saved and has no effect: flagged categories that no scorer covers.'),
}).meta({ id: 'SavedGatewayState' })
export type SavedGatewayState = z.infer<typeof SavedGatewayState>

const GatewaySaving = glassBody({ config: GivenGatewayConfig }).meta({ id: 'GatewaySaving' })

const Categories = z.array(storedText(1, 200)).max(100)

const SimulationRequest = z
  .strictObject({
    config: GivenGatewayConfig.optional().describe('Default: what is saved.'),
    policy: GivenGatewayConfig.optional().describe('Means the same as `config`, which wins.'),
    scenario: z
      .object({
        categories: Categories.optional(),
        text: storedText(0, 20_000)
          .optional()
          .describe('Looked for terms, and scored; lists are passed over without it.'),
      })
      .optional(),
    categories: Categories.optional().describe('Added to those of the scenario.'),
    persist: z.boolean().default(false).describe('Keeps the result in the history.'),
  })
  .meta({ id: 'GatewaySimulationRequest' })

export const rolloutModes = ['shadow', 'canary', 'enforced', 'rollback'] as const

export const gatewayDecisions = ['allow', 'rewrite', 'summary', 'escalate', 'refuse'] as const

const simulated = {
  decision: z.enum(gatewayDecisions),
  reason_code: z.string(),
  triggered_categories: z.array(z.string()),
  rollout_mode: z.enum(rolloutModes),
  policy_id: z.string(),
}
const hits = {
  allowlist_hits: z.array(z.string()).optional().describe('Only where there is a text.'),
  denylist_hits: z.array(z.string()).optional().describe('Only where there is a text.'),
  redactions: z
    .array(z.object({ type: z.string(), replaced: z.int().min(1) }))
    .optional()
    .describe('Only where there is a text and the configuration redacts: what is replaced.'),
}

const Simulation = z
  .object({
    ...simulated,
    ...hits,
    matches: z
      .array(TextPlace.extend({ pattern: z.string().describe('The term of the list.') }))
      .max(50)
      .optional()
      .describe('Only where there is a text: where the terms of both lists occur, the first 50.'),
    history_id: idOf('hist').optional().describe('With `persist`.'),
  })
  .meta({ id: 'GatewaySimulation' })
export type Simulation = z.infer<typeof Simulation>

const entry = {
  id: idOf('hist'),
  object: z.literal('policy_gateway.history_entry'),
  created_at: Moment,
  actor: z.string().describe('Who saved or simulated: the id of a key, or issuer and subject.'),
}

const HistoryEntry = z
  .discriminatedUnion('kind', [
    z.object({ ...entry, kind: z.literal('revision'), revision: Revision, config: GatewayConfig }),
    z.object({
      ...entry,
      kind: z.literal('simulation'),
      categories: z.array(z.string()).describe('Those that were given.'),
      ...simulated,
      ...hits,
    }),
  ])
  .meta({ id: 'GatewayHistoryEntry' })
export type HistoryEntry = z.infer<typeof HistoryEntry>

const Share = z.number().min(0).max(1)

const GatewayArmReport = z
  .object({
    arm: z.enum(['canary', 'shadow', 'enforced']),
    requests: z.int().min(0),
    decisions: z
      .array(
        z.object({
          decision: z.enum(gatewayDecisions),
          requests: z.int().min(0),
          share: Share.nullable().describe('null: the arm had no requests.'),
          share_low: Share.describe('With 95 % probability (Wilson) the share is not below it.'),
          share_high: Share.describe('With 95 % probability (Wilson) the share is not above it.'),
        }),
      )
      .length(gatewayDecisions.length),
  })
  .meta({ id: 'GatewayArmReport' })
export type GatewayArmReport = z.infer<typeof GatewayArmReport>

const GatewayRollout = z
  .object({
    object: z.literal('policy_gateway.rollout'),
    revision: Revision,
    policy_epoch: z.int().min(0),
    ...ProcessCounts,
    revisions: z
      .array(z.object({ revision: Revision, processes: z.int().min(1) }))
      .max(100)
      .describe('How many live processes run which revision, the newest first; 0: none.'),
    rolled_back_until: Moment.nullable().describe('null: it is not rolled back.'),
    counted_since: Moment.describe('The arms show what was decided since then: 24 hours.'),
    arms: z
      .array(GatewayArmReport)
      .length(3)
      .describe('What the rules that are saved now decided, whether or not it was enforced.'),
  })
  .meta({ id: 'GatewayRollout' })

const headers = changesManaged.headers.extend(ifMatchOf('configuration').shape)

const gateway = '/api/policy-gateway'
const changeErrors = ['revision_conflict', 'limit_reached'] as const

export const readGatewayConfig = gatewayEndpoint({
  id: 'readGatewayConfig',
  summary: 'Read the configuration of the policy gateway; the defaults before the first save',
  method: 'GET',
  path: `${gateway}/config`,
  permission: 'policy_gateway.read',
  response: GatewayState,
  etag: 'revision',
  errors: [],
})

export const saveGatewayConfig = gatewayEndpoint({
  id: 'saveGatewayConfig',
  summary: 'Save the configuration; what is left out gets its default',
  method: 'POST',
  path: `${gateway}/config`,
  permission: 'policy_gateway.write',
  ...changesManaged,
  headers,
  body: GatewaySaving,
  response: SavedGatewayState,
  etag: 'revision',
  errors: [...changeErrors, 'invalid_gateway_config', 'approval_required'],
})

export const simulateGateway = gatewayEndpoint({
  id: 'simulateGateway',
  summary: 'Say what a configuration decides in a scenario; nothing is changed',
  method: 'POST',
  path: `${gateway}/simulate`,
  permission: 'policy_gateway.read',
  ...exemptFromSets,
  furtherPermissions: [
    {
      permission: 'policy_gateway.write',
      when: 'with `persist: true`',
      isNeeded: (body) =>
        typeof body === 'object' && body !== null && 'persist' in body && body.persist === true,
    },
  ],
  body: SimulationRequest,
  response: Simulation,
  errors: ['invalid_gateway_config', 'policy_evaluation_unavailable'],
})

export const listGatewayHistory = gatewayEndpoint({
  id: 'listGatewayHistory',
  summary: 'List the last 50 saved revisions and the last 50 kept simulations, the newest first',
  method: 'GET',
  path: `${gateway}/history`,
  permission: 'policy_gateway.read',
  query: ListQuery.extend({
    order: z.enum(['asc', 'desc']).default('desc').describe('By time of creation.'),
  }),
  response: listOf(HistoryEntry).meta({ id: 'GatewayHistory' }),
  errors: ['invalid_cursor'],
})

export const restoreGatewayRevision = gatewayEndpoint({
  id: 'restoreGatewayRevision',
  summary: 'Save an older revision of the configuration again',
  method: 'POST',
  path: `${gateway}/history/:history_id/restore`,
  permission: 'policy_gateway.write',
  ...changesManaged,
  params: z.object({ history_id: AnyId }),
  query: glassQuery(changesManaged.query.shape),
  headers,
  response: SavedGatewayState,
  etag: 'revision',
  errors: [...changeErrors, 'history_entry_not_found', 'approval_required', 'missing_field'],
})

export const readGatewayRollout = gatewayEndpoint({
  id: 'readGatewayRollout',
  summary: 'Read which processes run which revision of the configuration, and what it decided',
  method: 'GET',
  path: `${gateway}/rollout`,
  permission: 'policy_gateway.read',
  response: GatewayRollout,
  isConditional: true,
  errors: [],
})
