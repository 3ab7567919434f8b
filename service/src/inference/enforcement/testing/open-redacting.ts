import { saveGatewayConfig } from '@gatehouse/contract/policy-gateway/gateway'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { sql } from 'kysely'
import { expect } from 'vitest'

import { openEveryWay } from './every-way.ts'

// For tests: calls of an organization that redacts.

type Every = Awaited<ReturnType<typeof openEveryWay>>

/** Every way to a model, for an organization that redacts. */
export async function openRedacting(
  environment: Record<string, string> = {},
  { rollout = {}, rules = {} }: { rollout?: object; rules?: object } = {},
) {
  const every = await openEveryWay(environment)
  await save(every, { rules: { redact: true, ...rules }, rollout })
  return every
}

/** Saves a configuration, and waits until it is in force. */
export async function save({ api }: Every, config: object) {
  const pin = () => api.house.policies.inForce.pin(api.organization.organizationId).snapshot
  const before = pin().epoch
  const { status } = await api.send(saveGatewayConfig, { body: { config } })
  expect(status).toBe(200)
  await waitUntil(() => pin().epoch > before)
}

/** What the upstream has received since the last time. */
export async function received({ upstream }: Every): Promise<string> {
  const answer = await fetch(`${upstream.url}/control/state`)
  const { lastRequests } = (await answer.json()) as { lastRequests: { body: unknown }[] }
  await fetch(`${upstream.url}/control/reset`, { method: 'POST' })
  return JSON.stringify(lastRequests.map(({ body }) => body))
}

/** The events of the calls so far. */
export async function eventsOf({ api }: Every) {
  const { rows } = await sql<{ header: Record<string, unknown> }>`
    select header from event where kind = 'enforcement'
      and organization_id = ${api.organization.organizationId} order by seq`.execute(api.house.db)
  return rows.map(({ header }) => header)
}

/** What an answer says, plain or streamed, in any format: its deltas, or its whole texts. */
export function textOf(body: string): string {
  const frames = body.includes('data: ')
    ? body
        .split('\n')
        .filter((line) => line.startsWith('data: {'))
        .map((line) => JSON.parse(line.slice(6)) as unknown)
    : [JSON.parse(body) as unknown]
  return frames.flatMap((frame) => textsIn(frame)).join('')
}

function textsIn(value: unknown, name = ''): string[] {
  if (typeof value === 'string') {
    return ['text', 'content', 'delta'].includes(name) ? [value] : []
  }
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([member, inner]) =>
    textsIn(inner, Array.isArray(value) ? name : member),
  )
}
