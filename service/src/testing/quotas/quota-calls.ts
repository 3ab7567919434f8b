import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { saveGatewayConfig } from '@gatehouse/contract/policy-gateway/gateway'
import type { ScriptUsage } from '@gatehouse/tools/scripted-upstream/script'
import { startScriptedUpstream } from '@gatehouse/tools/scripted-upstream/server'
import { stackModels } from '@gatehouse/tools/stack-models'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { sql } from 'kysely'
import { expect, onTestFinished } from 'vitest'

import { operator } from '#audit/event.ts'
import { grantCredits } from '#credits/payments/payments.ts'
import { createTestApi } from '#testing/test-api.ts'
import { createProjectKey } from '#testing/test-gateway.ts'

const justBeforeMidnight = new Date('2026-11-30T23:59:59.999Z')
const usageOfCall = { input: 10, output: 20 }
export const tokensOfCall = usageOfCall.input + usageOfCall.output
/** By the prices of the stack's models. */
export const creditsOfCall = usageOfCall.input * 3 + usageOfCall.output * 15

type Options = {
  /** The configuration that the organization has saved. */
  config?: object
  environment?: Record<string, string>
  /** Instead of the clock that the test moves. */
  atMs?: () => number
}
type Sent = { user?: string; usage?: ScriptUsage; model?: string; key?: string }

/** Calls to a scripted model by an organization with a saved configuration, at a time that the test chooses. */
export async function prepareQuotaCalls({ config, environment = {}, atMs }: Options) {
  const upstream = await startScriptedUpstream()
  onTestFinished(upstream.stop)
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-quotas-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const MODELS_FILE = join(folder, 'models.json')
  await writeFile(MODELS_FILE, JSON.stringify(stackModels({ scripted: upstream.url })))
  const clock = { nowMs: justBeforeMidnight.getTime() }
  const api = await createTestApi({
    now: () => new Date(atMs?.() ?? clock.nowMs),
    environment: { MODELS_FILE, STATE_DIRECTORY: folder, UPSTREAM_KEY: 'key', ...environment },
  })
  const { organizationId } = api.organization
  const { inForce } = api.house.policies
  const save = async (saved: object) => {
    const answer = await api.send(saveGatewayConfig, { body: { config: saved } })
    expect(answer.status).toBe(200)
    const { revision } = answer.body as unknown as { revision: number }
    await waitUntil(() => inForce.get(organizationId)?.gateway?.revision === revision)
  }
  await waitUntil(() => Number.isFinite(inForce.confirmedAtMs()))
  if (config) await save(config)
  const { value: key } = await createProjectKey(api.house, api.organization)
  const credits = { id: 'g', amount: 20_000_000n }
  await grantCredits(organizationId, credits, { ...api.house, by: operator })

  const post = async (url: string, payload: object, { user, key: other = key }: Sent = {}) => {
    const response = await api.app.inject({
      method: 'POST',
      url,
      headers: { authorization: `Bearer ${other}`, ...(user && { 'x-policy-user': user }) },
      payload,
    })
    const { error, policy } = response.json<{ error?: { code: string }; policy?: object }>()
    return { status: response.statusCode, code: error?.code, policy, headers: response.headers }
  }
  const call = (sent: Sent = {}) => {
    const { usage = usageOfCall, model = 'chat-scripted' } = sent
    const content = `#script ${JSON.stringify({ text: 'One two three.', usage })}`
    const messages = [{ role: 'user', content }]
    return post('/v1/chat/completions', { model, max_tokens: 100, messages }, sent)
  }
  const count = (sent: Sent = {}) => {
    const messages = [{ role: 'user', content: 'One two three.' }]
    return post('/v1/messages/count_tokens', { model: 'chat-scripted', messages }, sent)
  }
  const readUsage = async () => {
    const { rows } = await sql<Record<string, unknown>>`
      select scope, subject, window_start::text as day, requests::int, tokens::int, credits::int
      from quota_usage order by scope, subject, window_start`.execute(api.db)
    return rows
  }
  const readEvents = async () => {
    const { rows } = await sql<{ header: Record<string, unknown> }>`
      select header from event where kind = 'enforcement' order by at, id`.execute(api.db)
    return rows.map(({ header }) => header)
  }
  return { api, clock, save, post, call, count, readUsage, readEvents, organizationId }
}

export const userQuota = (window: string, requests: number, tokens = 0) => ({
  org_controls: { user_quotas: true, user_quota: { window, requests, tokens } },
})
export const projectQuota = (window: string, requests: number, tokens = 0) => ({
  org_controls: { project_quota: { window, requests, tokens } },
})
