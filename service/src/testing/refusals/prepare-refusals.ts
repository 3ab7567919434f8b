import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { saveGatewayConfig } from '@gatehouse/contract/policy-gateway/gateway'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { expect, onTestFinished } from 'vitest'

import { setStatus } from '#access/manage-organizations.ts'
import type { House } from '#assemble.ts'
import { operator } from '#audit/event.ts'
import { grantCredits } from '#credits/payments/payments.ts'
import { systemClock } from '#platform/clock.ts'
import { createInForce } from '#policies-in-force/in-force.ts'
import { createIssuerDouble } from '#testing/issuer-double.ts'
import { createTestApi } from '#testing/test-api.ts'

import { createCallers } from './callers.ts'
import type { Fault, Refusal } from './fault.ts'
import { publishAll } from './organization-rules.ts'
import { concurrentRequests, enter, type ProcessState } from './process-states.ts'
import {
  configurationOf,
  moderationFileIn,
  type Setting,
  startJudge,
  startScorers,
  writeModerationFile,
} from './setting.ts'

const firstSetting: Setting = {
  action: 'refuse',
  isStrict: false,
  isLocalAccepted: true,
  hasJudge: true,
  isOverQuestions: false,
  isSuspended: false,
}

/** An API whose calls can be refused for every reason of the tables, and whose setting can be changed. */
export async function prepareRefusals() {
  const flags = new Set<ProcessState>()
  const places = await openPlaces()
  const { issuer, folder } = places
  const files = await writeFiles(folder)
  await writeModerationFile(places, firstSetting)
  const api = await createTestApi({
    environment: (organizationId) => ({
      ...files,
      MODERATION_FILE: moderationFileIn(folder),
      EGRESS_PRIVATE_TARGETS: issuer.host,
      JWT_ISSUERS: JSON.stringify([
        {
          issuer: issuer.issuer,
          jwks_url: issuer.jwksUrl,
          audience: issuer.audience,
          organizations: [organizationId],
          permissions: { use: ['model.invoke'] },
        },
      ]),
    }),
    change: (house) => withFlags(house, flags),
  })
  const { house, organization } = api
  const { organizationId } = organization
  await waitUntil(house.policies.areKnown)
  const gift = { id: 'enough', amount: 10_000_000n }
  await grantCredits(organizationId, gift, { ...house, by: operator })
  const ids = await publishAll(api)
  const callerWith = createCallers(api, issuer)
  let setting = firstSetting

  async function saveConfiguration(next: Setting) {
    const body = { config: configurationOf(next) }
    const { status, body: saved } = await api.send(saveGatewayConfig, { body })
    expect(status).toBe(200)
    const { revision } = saved as unknown as { revision: number }
    const { inForce } = house.policies
    await waitUntil(() => inForce.get(organizationId)?.gateway?.revision === revision)
  }
  await saveConfiguration(firstSetting)

  async function setModeration(next: Setting) {
    const before = house.moderation.current()
    await writeModerationFile(places, next)
    await waitUntil(() => house.moderation.current() !== before)
  }

  async function setSuspended({ isSuspended }: Setting) {
    await setStatus(organizationId, isSuspended ? 'suspended' : 'active', house)
    await waitUntil(async () => {
      const { code } = await send([])
      return (code === 'organization_suspended') === isSuspended
    })
  }

  async function send(faults: readonly Fault[]): Promise<Refusal> {
    const traits = new Set(faults.flatMap(({ caller }) => caller ?? []))
    const headers = { 'content-type': 'application/json', ...(await callerWith(traits)) }
    const states = faults.flatMap(({ state }) => state ?? [])
    const endings = states.map((state) => enter(state, { house, organizationId, flags }))
    const { statusCode, body } = await api.app.inject(toRequest(faults, headers))
    for (const end of endings) await end()
    const { error, policy } = JSON.parse(body) as Body
    const policyId = policy?.policy_id ?? null
    return { param: null, message: '', code: '', ...error, status: statusCode, policyId }
  }

  /** What calls have left so far: settled holds, and questions to other models. */
  async function readTraces() {
    const settled = await api.db
      .selectFrom('ledger_entry')
      .select('amount')
      .where('kind', '=', 'usage')
      .execute()
    return {
      settled: settled.length,
      charged: settled.filter(({ amount }) => amount !== '0').length,
      scorers: places.scorers.calls.length,
      judge: places.judge.requests.length,
    }
  }

  return {
    ids,
    send,
    readTraces,
    /** Puts a setting in force. */
    async change(next: Setting) {
      const before = setting
      setting = next
      if (before.isSuspended && !next.isSuspended) await setSuspended(next)
      if (before.action !== next.action || before.isStrict !== next.isStrict) {
        await saveConfiguration(next)
      }
      const isSame =
        before.isLocalAccepted === next.isLocalAccepted && before.hasJudge === next.hasJudge
      if (!isSame) await setModeration(next)
      // What was asked counts for a minute, so it is asked again.
      if (next.isOverQuestions) await askTooMuch(house, organizationId)
      if (next.isSuspended && !before.isSuspended) await setSuspended(next)
    },
  }
}

type Body = {
  error?: { code: string; message: string; param: string | null }
  policy?: { policy_id: string }
}

async function openPlaces() {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-refusals-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const judge = await startJudge()
  onTestFinished(() => judge.close())
  const scorers = await startScorers()
  onTestFinished(() => scorers[Symbol.asyncDispose]())
  const issuer = await createIssuerDouble(systemClock)
  onTestFinished(() => issuer[Symbol.asyncDispose]())
  return { folder, judge, scorers, issuer }
}

const plenty = 1_000_000_000
const questionsMax = 100_000

/** A model that costs more than the organization has, one that is cheap, and limits that no call reaches by accident. */
async function writeFiles(folder: string) {
  const modelOf = (id: string, output: string) => ({
    id,
    context_tokens: 100_000,
    max_output_tokens: 50_000,
    default_output_tokens: 1000,
    prices: { input: '1', output },
    capabilities: { json_schema: false },
    upstreams: [{ upstream: 'only' }],
  })
  // Nothing listens there.
  const only = { kind: 'openai', base_url: 'http://127.0.0.1:9/v1', formats: ['chat_completions'] }
  const models = [modelOf('m', '1'), modelOf('dear', '100000')]
  const limits = {
    requests_per_minute: plenty,
    requests_per_day: plenty,
    tokens_per_minute: plenty,
    concurrent_requests: concurrentRequests,
  }
  const organization = { ...limits, scorer_questions_per_minute: questionsMax }
  const file = async (name: string, content: object) => {
    await writeFile(join(folder, name), JSON.stringify(content))
    return join(folder, name)
  }
  return {
    MODELS_FILE: await file('models.json', { upstreams: { only }, models }),
    LIMITS_FILE: await file('limits.json', {
      free: { organization, project: limits, key: limits },
    }),
    STATE_DIRECTORY: folder,
  }
}

/** The parts that only an outage of hours would bring into these states. */
function withFlags(house: House, flags: ReadonlySet<ProcessState>): House {
  const { inference, policies, now } = house
  const { pin, ...others } = policies.inForce
  const unknown = createInForce({ now })
  return {
    ...house,
    inference: {
      ...inference,
      canRecord: () => !flags.has('audit log full') && inference.canRecord(),
    },
    policies: {
      ...policies,
      inForce: {
        ...others,
        pin: (id) => (flags.has('policies unknown') ? unknown.pin(id) : pin(id)),
      },
    },
  }
}

async function askTooMuch({ limits }: House, organizationId: string) {
  const caller = { organizationId, plan: 'free', paidMicroUsd: 0, limitOverrides: null } as const
  const { scorer } = limits.openQuestions(caller)
  scorer.add(2 * questionsMax)
  await waitUntil(() =>
    scorer.check().then(
      () => false,
      () => true,
    ),
  )
}

/** A call in which all of these faults are. */
function toRequest(faults: readonly Fault[], headers: Readonly<Record<string, string>>) {
  const join = (name: 'opening' | 'answered' | 'said') =>
    faults.flatMap((fault) => fault[name] ?? []).join(' ')
  const isPermitted = !faults.some(({ lacksAllowedTerm }) => lacksAllowedTerm)
  const text = `Go on${isPermitted ? ' as permitted' : ''}. ${join('said')}`
  const content = [{ type: 'text', text }, ...faults.flatMap(({ part }) => part ?? [])]
  const body = {
    model: 'm',
    messages: [
      { role: 'user', content: `Hello. ${join('opening')}` },
      { role: 'assistant', content: `Hello. ${join('answered')}` },
      { role: 'user', content },
    ],
    ...Object.assign({}, ...faults.map(({ members }) => members ?? {})),
  }
  return {
    method: faults.flatMap(({ method }) => method ?? [])[0] ?? ('POST' as const),
    url: `/v1/chat/completions${faults.map(({ query = '' }) => query).join('')}`,
    headers: Object.assign({ ...headers }, ...faults.map((fault) => fault.headers ?? {})),
    payload: JSON.stringify(body) + faults.map(({ trailing = '' }) => trailing).join(''),
  }
}
