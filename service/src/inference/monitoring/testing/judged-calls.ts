import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { createPolicy, type PolicyCreation, publishPolicy } from '@gatehouse/contract/policy'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { sql } from 'kysely'
import { expect, onTestFinished } from 'vitest'

import type { House } from '#assemble.ts'
import { createJudgeDouble } from '#moderation/testing/judge-double.ts'
import { preparePlainCalls } from '#testing/plain-calls.ts'

// For tests: calls under policies in plain language, with a judge that does what the test says.

const many = {
  requests_per_minute: 100_000,
  requests_per_day: 1_000_000,
  tokens_per_minute: 1e9,
  concurrent_requests: 1000,
}

async function writeSettings(judge: object | null) {
  const folder = await mkdtemp(join(tmpdir(), 'judged-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const scorers = [{ name: 'scripted', adapter: 'scripted' }]
  const moderation = join(folder, 'moderation.json')
  await writeFile(moderation, JSON.stringify({ scorers, ...(judge && { judge }) }))
  const limits = join(folder, 'limits.json')
  const free = { organization: many, project: many, key: many }
  await writeFile(limits, JSON.stringify({ free }))
  return { MODERATION_FILE: moderation, LIMITS_FILE: limits }
}

type StoredEvent = { id: string; header: Record<string, unknown>; payload: string }

/** `settings` are members of the judge; null: there is none. */
export async function prepareJudgedCalls(settings: object | null = {}) {
  const double = await createJudgeDouble()
  onTestFinished(() => double.close())
  const judge = { adapter: 'generic', base_url: double.baseUrl, model: 'judge' }
  const environment = await writeSettings(settings && { ...judge, ...settings })
  let stopped: Promise<void> | undefined
  const calls = await preparePlainCalls({
    environment,
    // A test may stop the process before the end.
    change: (house: House) => ({ ...house, stop: () => (stopped ??= house.stop()) }),
  })
  const { organizationId } = calls.organization
  const epoch = () => calls.house.policies.inForce.pin(organizationId).snapshot.epoch

  async function putInForce(creation: Partial<PolicyCreation>): Promise<string> {
    const draft = { name: 'Kind', rule: 'Nobody may be rude.', scope: 'organization', ...creation }
    const { body } = await calls.send(createPolicy, { body: draft })
    const before = epoch()
    const params = { policy_id: body.id }
    const { status } = await calls.send(publishPolicy, { params, body: { revision: 1 } })
    expect(status).toBe(200)
    await waitUntil(() => epoch() > before)
    return body.id
  }

  async function eventsOf(phase: 'call' | 'monitoring'): Promise<StoredEvent[]> {
    const { rows } = await sql<StoredEvent>`
      select id, header, convert_from(payload, 'UTF8') as payload from event
      where organization_id = ${organizationId} and header->>'phase' = ${phase} order by seq`.execute(
      calls.db,
    )
    return rows
  }
  async function waitForEvents(count: number): Promise<StoredEvent[]> {
    let found: StoredEvent[] = []
    await waitUntil(async () => {
      found = await eventsOf('monitoring')
      return found.length >= count
    })
    return found
  }
  const decisions = () =>
    calls.db
      .selectFrom('policy_decision_hour')
      .select(['policy_id', 'version', 'direction', 'decision', 'mode', 'count'])
      .orderBy('direction')
      .execute()
  /** What a counter or a gauge says, by its labels. */
  async function metric(name: string): Promise<Record<string, number>> {
    const values = (await calls.house.metrics.registry.getSingleMetric(name)?.get())?.values ?? []
    return Object.fromEntries(
      values.map(({ labels, value }) => [Object.values(labels).join(), value]),
    )
  }
  const say = (content: string) => ({ messages: [{ role: 'user', content }] })

  return { ...calls, double, putInForce, eventsOf, waitForEvents, decisions, metric, say }
}
