import type { RequestOf } from '@gatehouse/contract/endpoint'
import type { GatewayConfig } from '@gatehouse/contract/policy-gateway/config'
import { type Simulation, simulateGateway } from '@gatehouse/contract/policy-gateway/gateway'
import type { FastifyInstance } from 'fastify'

import { lockOrganization } from '#access/organizations/organization-store.ts'
import type { Actor } from '#audit/actor.ts'
import { insertEvents } from '#audit/event-store.ts'
import { buildSimulationEvent, callerOf, type EventHeader } from '#audit/event.ts'
import { findConfig } from '#gateway-config/config/config-store.ts'
import { addToHistory } from '#gateway-config/config/history-store.ts'
import type { SimulationContent } from '#gateway-config/config/list-history.ts'
import { requireConsistent } from '#gateway-config/config/save-config.ts'
import { present } from '#gateway-config/config/saved-config.ts'
import { isProtectedIn, isRolledBack, simulatedMode } from '#gateway-config/decide/arm.ts'
import { isFlagged } from '#gateway-config/decide/categories.ts'
import { decide } from '#gateway-config/decide/decide.ts'
import { buildTermLists } from '#gateway-config/decide/term-lists.ts'
import { bindMutation, type MutationDeps } from '#http/bind-mutation.ts'
import type { Principal } from '#http/principal.ts'
import { categories, type Category } from '#moderation/categories.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Tx } from '#platform/database.ts'
import { within } from '#platform/deadline.ts'
import { createId } from '#platform/id.ts'
import { startBackgroundWork } from '#platform/steps/background-work.ts'
import { type Asker, finish } from '#platform/steps/steps.ts'
import { createPlaceholders } from '#redaction/placeholders.ts'
import { redactText } from '#redaction/text-redactor.ts'

export type SimulationDeps = MutationDeps & {
  /**
   * The categories that a text reaches, among the flagged ones and those always blocked; null if that cannot be known. Scorers
   * outside of this process get `sent`.
   */
  findCategories(
    asked: { text: string; sent: string },
    flagged: readonly Category[],
    asker: Asker & { caller: Principal },
  ): Promise<readonly string[] | null>
}

type Body = RequestOf<typeof simulateGateway>['body']
type Simulated = { config: GatewayConfig; given: string[]; answer: Simulation }

const scoringMaxMs = 10_000

/** Says what a configuration decides in a scenario. Nothing is kept of it, unless that is asked for. */
export function serveSimulateGateway(app: FastifyInstance, deps: SimulationDeps) {
  const results = new WeakMap<Body, Simulated>()
  bindMutation(app, simulateGateway, deps, {
    // Outside of the transaction, because scorers may be asked.
    async prepare({ body }, { principal }) {
      results.set(body, await simulate(deps, principal, body))
    },
    async change(tx, { body }, context) {
      const simulated = results.get(body)
      if (!simulated) throw new Error('a simulation was not prepared')
      if (!body.persist) return simulated.answer
      const { organizationId } = context.principal
      return keep(tx, { organizationId, by: callerOf(context), at: deps.now() }, simulated)
    },
  })
}

async function simulate(deps: SimulationDeps, caller: Principal, body: Body): Promise<Simulated> {
  const { organizationId } = caller
  const saved = await findConfig(deps.db, organizationId)
  const config = body.config ?? body.policy ?? present(saved).config
  requireConsistent(config, body.config ? 'body.config' : 'body.policy')
  const mode = simulatedMode(
    config.rollout,
    isRolledBack(saved?.rolledBackUntil ?? null, deps.now()),
  )
  const given = [...new Set([...(body.scenario?.categories ?? []), ...(body.categories ?? [])])]
  const text = body.scenario?.text
  const found = text === undefined ? null : await read(deps, caller, { text, config, mode })
  const outcome = decide(config, {
    arm: mode,
    exceededQuotas: new Set(),
    terms: found?.terms ?? null,
    categories: [...new Set([...given, ...(found?.categories ?? [])])],
  })
  const answer: Simulation = {
    decision: outcome.decision,
    reason_code: outcome.reasonCode,
    triggered_categories: [...outcome.triggeredCategories],
    rollout_mode: mode,
    policy_id: config.policy_id,
    ...(found && {
      allowlist_hits: [...outcome.terms.allowlist],
      denylist_hits: [...outcome.terms.denylist],
      matches: found.matches,
    }),
    ...(found?.redactions && { redactions: found.redactions }),
  }
  return { config, given, answer }
}

/** What is in the text of a scenario. */
async function read(
  { findCategories }: SimulationDeps,
  caller: Principal,
  { text, config, mode }: { text: string; config: GatewayConfig; mode: Simulation['rollout_mode'] },
) {
  const redacted = config.rules.redact ? await redact(text) : null
  // As in a call.
  const sent = redacted && isProtectedIn(mode) ? redacted.text : text
  const work = startBackgroundWork()
  const lists = await work.run(buildTermLists(config.rules))
  const matches = await work.run(lists.locate(text))
  const flagged = categories.filter((each) => isFlagged(config.rules.flagged_categories, each))
  const found = await within(scoringMaxMs, notScored, (signal) =>
    findCategories({ text, sent }, flagged, { owner: caller.organizationId, signal, caller }),
  )
  if (!found) throw notScored()
  return {
    terms: finish(lists.find([text])),
    matches,
    categories: found,
    redactions: redacted?.redactions,
  }
}

/** What would be replaced, whether or not that is enforced. */
async function redact(text: string) {
  const placeholders = createPlaceholders()
  const redacted = await startBackgroundWork().run(redactText(text, placeholders))
  const { counts } = placeholders
  const redactions = Array.from(counts, ([type, replaced]) => ({ type, replaced }))
  return { text: redacted, redactions }
}

const notScored = () =>
  new ApiError(
    'policy_evaluation_unavailable',
    'The text of the scenario could not be scored at the moment; retry later.',
  )

type Keeping = { organizationId: string; by: Actor; at: Date }

/** The text of the scenario is kept nowhere, so places in it would say nothing. */
async function keep(tx: Tx, { organizationId, by, at }: Keeping, simulated: Simulated) {
  const { config, given, answer } = simulated
  const id = createId('hist', at)
  const { matches: _, ...kept } = answer
  const content: SimulationContent = { categories: given, ...kept }
  await lockOrganization(tx, organizationId)
  await addToHistory(tx, organizationId, {
    id,
    kind: 'simulation',
    revision: null,
    actor: by.id,
    content,
    created_at: at,
  })
  const facts: EventHeader = {
    policy_id: answer.policy_id,
    policy_name: config.name,
    decision: answer.decision,
    reason_code: answer.reason_code,
    rollout_mode: answer.rollout_mode,
    triggered_categories: answer.triggered_categories,
    allowlist_hits: answer.allowlist_hits ?? [],
    denylist_hits: answer.denylist_hits ?? [],
    ...(answer.redactions && { redactions: answer.redactions }),
    data_classification: config.org_controls.data_classification,
    scenario: given,
  }
  await insertEvents(tx, [buildSimulationEvent({ organizationId, by, historyId: id, facts }, at)])
  return { ...answer, history_id: id }
}
