import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { createPolicy, publishPolicy } from '@gatehouse/contract/policy'
import { saveGatewayConfig } from '@gatehouse/contract/policy-gateway/gateway'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { expect, onTestFinished, test } from 'vitest'

import { type PlainCalls, preparePlainCalls } from '#testing/plain-calls.ts'

import { writeModeration } from './testing/moderated-calls.ts'

// A request that could be refused for two reasons is refused for the one that stands first in the table of
// docs/specification/conventions.md#order-of-checks-on-inference.

const judge = { adapter: 'scripted' }
const scripted = { scorers: [{ name: 'scripted', adapter: 'scripted' }], judge }
const localOnly = { accept_local_only: true, judge }

const rules = {
  exact: { rule: 'cel: text.contains("forbidden")', direction: 'request' },
  answers: { rule: 'cel: text.contains("unsayable")', direction: 'response' },
  scored: { rule: 'cel: score("hate") > 0.5', direction: 'request' },
  plain: { rule: 'Be kind to everyone.', direction: 'request' },
} as const
type RuleName = keyof typeof rules
type PolicyIds = Record<RuleName, string>

/** What is wrong with a request: each is found by one check. */
type Fault = {
  said?: string
  /** By an earlier answer. */
  saidBefore?: string
  members?: object
  credential?: string
}
type Answer = {
  statusCode: number
  error: { code: string; message: string; param?: string | null }
  policyId: string | undefined
}
type Reason = { fault: Fault; isOf(answer: Answer): boolean }

const isInHistory = ({ error }: Answer) => error.param === 'messages[1]'
const isCategory = (answer: Answer, category: string) =>
  answer.error.code === 'moderation_blocked' && answer.error.message.includes(category)

/** The reasons by their names in the table. */
const reasonsOf = (ids: PolicyIds): Record<string, Reason> => ({
  credential: {
    fault: { credential: 'unknown' },
    isOf: ({ statusCode }) => statusCode === 401,
  },
  body: {
    fault: { members: { temperature: 'hot' } },
    isOf: ({ error }) => error.message.startsWith('temperature must be'),
  },
  'exact rule': {
    fault: { said: 'forbidden' },
    isOf: ({ policyId }) => policyId === ids.exact,
  },
  'always-blocked category, local scorer': {
    fault: { said: 'I want to end my life and I am going to kill myself tonight.' },
    isOf: (answer) => isCategory(answer, 'self-harm'),
  },
  'configuration: refuse': {
    fault: { said: 'denied' },
    isOf: ({ policyId }) => policyId === 'house',
  },
  'exact rule, earlier answer': {
    fault: { saidBefore: 'unsayable' },
    isOf: (answer) => isInHistory(answer) && answer.policyId === ids.answers,
  },
  credits: {
    fault: { members: { model: 'dear' } },
    isOf: ({ statusCode }) => statusCode === 402,
  },
  'blocked category, configured scorer': {
    fault: { said: '[[cat:sexual/minors=0.99]]' },
    isOf: (answer) => isCategory(answer, 'sexual/minors') && !isInHistory(answer),
  },
  'rule over scores': {
    fault: { said: '[[cat:hate=0.9]]' },
    isOf: ({ policyId }) => policyId === ids.scored,
  },
  'plain language': {
    fault: { said: `[[rule:${ids.plain}=0.9]]` },
    isOf: ({ policyId }) => policyId === ids.plain,
  },
  'blocked category, earlier answer, configured scorer': {
    fault: { saidBefore: '[[cat:sexual/minors=0.99]]' },
    isOf: (answer) => isCategory(answer, 'sexual/minors') && isInHistory(answer),
  },
  'configuration: escalate, rewrite, summary': {
    fault: { said: 'denied' },
    isOf: ({ policyId }) => policyId === 'house',
  },
})

/** A model whose calls cost more than the organization has, and one that is cheap. */
async function writeModels(): Promise<Record<string, string>> {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-order-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const modelOf = (id: string, output: string) => ({
    id,
    context_tokens: 100_000,
    max_output_tokens: 50_000,
    default_output_tokens: 1000,
    prices: { input: '1', output },
    upstreams: [{ upstream: 'only' }],
  })
  const only = { kind: 'openai', base_url: 'http://127.0.0.1:9/v1', formats: ['chat_completions'] }
  const models = [modelOf('m', '1'), modelOf('dear', '100000')]
  const file = join(folder, 'models.json')
  await writeFile(file, JSON.stringify({ upstreams: { only }, models }))
  return { MODELS_FILE: file, STATE_DIRECTORY: folder }
}

async function putInForce(calls: PlainCalls, { mode, isLocal }: Setup): Promise<PolicyIds> {
  const ids: Partial<PolicyIds> = {}
  // Without a configured scorer no rule that reads scores can be published.
  const drafts = Object.entries(rules).filter(([name]) => !isLocal || name !== 'scored')
  for (const [name, draft] of drafts) {
    const body = { name, scope: 'organization', mode: 'enforcing', ...draft }
    const created = await calls.send(createPolicy, { body })
    const { id } = created.body as { id: string }
    const params = { policy_id: id }
    expect(await calls.send(publishPolicy, { params, body: { revision: 1 } })).toMatchObject({
      status: 200,
    })
    ids[name as RuleName] = id
  }
  const config = {
    policy_id: 'house',
    rules: { denylist: ['denied'] },
    refusal_replacement: { mode, escalation_path: 'help@example.com' },
  }
  expect(await calls.send(saveGatewayConfig, { body: { config } })).toMatchObject({ status: 200 })
  const { inForce } = calls.house.policies
  await waitUntil(
    () => inForce.pin(calls.organization.organizationId).snapshot.epoch === drafts.length + 1,
  )
  return ids as PolicyIds
}

async function send(calls: PlainCalls, faults: readonly Fault[]): Promise<Answer> {
  const join = (name: 'said' | 'saidBefore') => faults.flatMap((each) => each[name] ?? []).join(' ')
  const credential = faults.find((each) => each.credential)?.credential ?? calls.credential
  const before = join('saidBefore')
  const answer = await calls.app.inject({
    method: 'POST',
    url: '/v1/chat/completions',
    headers: { authorization: `Bearer ${credential}` },
    payload: {
      model: 'm',
      messages: [
        { role: 'user', content: 'Hello.' },
        { role: 'assistant', content: before === '' ? 'Hello.' : before },
        { role: 'user', content: `Go on. ${join('said')}` },
      ],
      ...Object.assign({}, ...faults.map(({ members }) => members ?? {})),
    },
  })
  const { error, policy } = answer.json() as {
    error: Answer['error']
    policy?: { policy_id: string }
  }
  return { statusCode: answer.statusCode, error, policyId: policy?.policy_id }
}

/** The names in the first column of the table. */
async function readTable(): Promise<string[]> {
  const page = new URL('../../../../docs/specification/conventions.md', import.meta.url)
  const [, section = ''] = (await readFile(page, 'utf8')).split('## Order of checks on inference')
  const [own = ''] = section.split('\n## ')
  return [...own.matchAll(/^\| \d+ \| ([^|]+) \|/gm)].map(([, name = '']) => name)
}

type Setup = {
  mode: 'refuse' | 'escalate'
  isLocal: boolean
  /** Reasons that such a gateway does not have. */
  without: readonly string[]
}

const setups: Record<string, Setup> = {
  'a configuration that refuses': {
    mode: 'refuse',
    isLocal: false,
    without: ['always-blocked category, local scorer', 'configuration: escalate, rewrite, summary'],
  },
  'a configuration that escalates': {
    mode: 'escalate',
    isLocal: false,
    without: ['always-blocked category, local scorer', 'configuration: refuse'],
  },
  'the local scorer alone': {
    mode: 'refuse',
    isLocal: true,
    without: [
      'blocked category, configured scorer',
      'rule over scores',
      'blocked category, earlier answer, configured scorer',
      'configuration: escalate, rewrite, summary',
    ],
  },
}

test.each(Object.entries(setups))(
  'of two reasons the first of the table counts, with %s',
  async (_, setup) => {
    const moderation = await writeModeration(setup.isLocal ? localOnly : scripted)
    const calls = await preparePlainCalls({
      environment: { ...moderation, ...(await writeModels()) },
    })
    const reasons = reasonsOf(await putInForce(calls, setup))
    const names = await readTable()
    expect(names.toSorted()).toEqual(Object.keys(reasons).toSorted())
    const ordered = names.filter((name) => !setup.without.includes(name))
    expect(ordered.length).toBeGreaterThan(7)
    const wrong: unknown[] = []
    for (const [index, first] of ordered.entries()) {
      for (const second of ordered.slice(index)) {
        const faults = [...new Set([first, second])].flatMap((name) => reasons[name]?.fault ?? [])
        const answer = await send(calls, faults)
        if (!reasons[first]?.isOf(answer)) wrong.push({ first, second, answer })
      }
    }
    expect(wrong).toEqual([])
  },
)
