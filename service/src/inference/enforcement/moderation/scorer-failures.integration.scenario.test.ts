import { expect, onTestFinished, test } from 'vitest'

import { prepareModeratedCalls } from '#inference/enforcement/testing/moderated-calls.ts'
import { createScorerDouble } from '#moderation/testing/scorer-double.ts'

// What each failure of a scorer does to a call, with either setting of `degraded`, and what the event of the call says.

type Reply = NonNullable<Parameters<typeof createScorerDouble>[0]>
type Failure = Parameters<Awaited<ReturnType<typeof createScorerDouble>>['become']>[0]

async function prepare(members: object, adapter = 'openai', reply?: Reply) {
  const scorer = await createScorerDouble(reply)
  onTestFinished(() => scorer[Symbol.asyncDispose]())
  const place = { base_url: scorer.baseUrl, model: 'm', deadline_ms: 300 }
  const scorers = [{ name: 'remote', adapter, ...place }]
  const { calls, ask: askFor, lastEvent } = await prepareModeratedCalls({ scorers, ...members })

  /** What comes of a call, in a word, and what its event says. Each says something else, because scores are remembered. */
  async function ask(content: string) {
    const outcome = await askFor(content)
    const event = (await lastEvent()) as Record<string, unknown>
    const { decision, reason_code, triggered_categories = [], moderation_degraded = false } = event
    return { outcome, decision, reason_code, triggered_categories, moderation_degraded }
  }
  return { scorer, calls, ask }
}

/** No caller can bring these about by the texts it sends. */
const outages = ['hangs', 'hangs up', 'stops within its answer', 429, 500, 503] as const
/** They may depend on the text. */
const oddReplies = [
  'answers half of its JSON',
  'answers for other texts',
  'answers without end',
] as const
/** The operator has to act. */
const refusals = [401, 403, 404] as const

const quiet = { triggered_categories: [], moderation_degraded: false }
const refused = {
  ...quiet,
  outcome: '503 policy_evaluation_unavailable',
  decision: 'refuse',
  reason_code: 'POLICY_EVALUATION_UNAVAILABLE',
}
const notTaken = {
  ...refused,
  outcome: '400 moderation_blocked',
  reason_code: 'MODERATION_BLOCKED',
}
const blocked = { ...notTaken, triggered_categories: ['self-harm'] }
const answered = { ...quiet, outcome: '200 answered', decision: 'allow', reason_code: null }
const degraded = { ...answered, moderation_degraded: true }

/** The local scorer finds it by its words. */
const marked = 'I want to kill myself tonight.'

/** What comes of a harmless and of a marked call while the scorer fails, one failure after another. */
async function outcomesOf(members: object, failures: readonly Failure[]) {
  const { scorer, ask } = await prepare(members)
  const outcomes = []
  for (const [number, failure] of failures.entries()) {
    scorer.become(failure)
    const harmless = await ask(`What is on map ${number}?`)
    const hit = await ask(`${marked} It is ${number}.`)
    scorer.become('answers')
    expect(await ask(`Who drew map ${number}?`)).toEqual(answered)
    outcomes.push({ failure, harmless, hit })
  }
  return outcomes
}

const expectEach = (failures: readonly Failure[], harmless: object, hit: object = blocked) =>
  failures.map((failure) => ({ failure, harmless, hit }))

const all = [...outages, ...oddReplies, ...refusals]

test('refuse: nothing passes that no scorer has seen', async () => {
  expect(await outcomesOf({}, [...all, 400])).toEqual([
    ...expectEach(all, refused),
    ...expectEach([400], notTaken),
  ])
})

test('allow: only an outage lets pass what the local scorer finds harmless', async () => {
  expect(await outcomesOf({ degraded: 'allow' }, [...all, 400])).toEqual([
    ...expectEach(outages, degraded),
    ...expectEach([...oddReplies, ...refusals], refused),
    ...expectEach([400], notTaken),
  ])
})

const chatReply = (content: string, logprobs: object | null = null, finish_reason = 'stop') => ({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason, logprobs }],
})
const surelyUnsafe = {
  content: [
    {
      token: 'safe',
      logprob: -5,
      top_logprobs: [
        { token: 'unsafe', logprob: -0.01 },
        { token: 'safe', logprob: -5 },
      ],
    },
  ],
}

test.each([
  ['that it is safe, without probabilities', chatReply('safe'), answered],
  ['that it is not, without probabilities', chatReply('unsafe\nS11'), blocked],
  ['a verdict against its probabilities', chatReply('safe', surelyUnsafe), refused],
  ['a verdict that contradicts itself', chatReply('safe\nS11'), refused],
  ['a category that it does not have', chatReply('unsafe\nS99'), refused],
  ['what a text has talked it into', chatReply('Sure! I will answer "safe" from now on.'), refused],
  ['half of a verdict', chatReply('unsafe\nS1', null, 'length'), refused],
])('a guard model that says %s', async (_, reply, expected) => {
  const { ask, calls } = await prepare({ degraded: 'allow' }, 'llama_guard', ({ body }) =>
    // Its answer is harmless: only the request is told about.
    JSON.stringify(body).includes('An answer.') ? chatReply('safe') : reply,
  )
  expect(await ask('What is on the map?')).toEqual(expected)
  expect(calls.upstream.bodies).toHaveLength(expected === answered ? 1 : 0)
})
