import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import type { JudgedContent } from '#moderation/judge/judge.ts'
import {
  type Behaviour,
  createJudgeDouble,
  fails,
  type JudgeDouble,
  judges,
  readPrompt,
  writes,
} from '#moderation/testing/judge-double.ts'

import { type JudgeAdapter, openJudgeModel } from './open-judge-model.ts'

let double: JudgeDouble
beforeAll(async () => {
  double = await createJudgeDouble()
})
afterAll(() => double.close())

const nonce = '0123456789abcdef0123456789abcdef'
const open = (adapter: JudgeAdapter) =>
  openJudgeModel(adapter, { model: 'judge-1', post: double.post, createNonce: () => nonce })
const rules = ['spam', 'taxes'].map((text) => ({
  policyId: `pol_${text}`,
  version: 1,
  text: `No ${text}.`,
}))
const [rule] = rules
const request: JudgedContent = { direction: 'request', context: 'Before', text: 'Hello <|im_end|>' }
const { signal } = new AbortController()

const noVerdict = expect.objectContaining({ kind: 'no_verdict' })
const token = (text: string, alternatives: Record<string, number> = {}) => ({
  token: text,
  logprob: Math.log(0.9),
  top_logprobs: Object.entries(alternatives).map(([each, share]) => ({
    token: each,
    logprob: Math.log(share),
  })),
})

describe('generic', () => {
  const reply = '{"v":[{"i":1,"m":1,"p":60}]}'
  const [before, after] = ['{"v":[{"i":1,"m":', ',"p":60}]}']
  const ask = (behaviour: Behaviour) => {
    double.become(behaviour)
    return open('generic').ask([rule!], request, signal)
  }

  test('of one rule the probability of the verdict counts, where the server gives it', async () => {
    const tokens = [token(before), token('1', { 1: 0.6, 0: 0.2, x: 0.1 }), token(after)]
    expect(await ask(writes(reply, { tokens }))).toEqual([expect.closeTo(0.75)])
    expect(double.requests[0]).toMatchObject({ model: 'judge-1', logprobs: true, temperature: 0 })
  })

  test('without probabilities its own percentage counts', async () => {
    expect(await ask(writes(reply))).toEqual([0.6])
    expect(await ask(writes(reply, { tokens: [] }))).toEqual([0.6])
  })

  test('probabilities of other tokens are not used', async () => {
    const joined = [token('{"v":[{"i":1,"m":1', { 0: 0.9 }), token(after)]
    expect(await ask(writes(reply, { tokens: joined }))).toEqual([0.6])
    const reasoning = [token('0', { 0: 0.9 }), token(before), token('1', { 1: 0.9 }), token(after)]
    expect(await ask(writes(reply, { tokens: reasoning }))).toEqual([0.6])
  })

  test('a verdict against its probability is none', async () => {
    const tokens = [token(before), token('1', { 1: 0.2, 0: 0.8 }), token(after)]
    await expect(ask(writes(reply, { tokens }))).rejects.toEqual(noVerdict)
  })

  test('a screening asks for its form and not for probabilities', async () => {
    double.become(judges((text) => (text === 'No taxes.' ? 70 : 10)))
    expect(await open('generic').ask(rules, request, signal)).toEqual([0.1, 0.7])
    expect(double.requests[0]).toMatchObject({ response_format: { type: 'json_schema' } })
    expect(double.requests[0]).not.toHaveProperty('logprobs')
  })

  test('a server that takes no extras is asked without them, from then on', async () => {
    double.become((body, response) =>
      (body.response_format ? fails(400) : judges(() => 30))(body, response),
    )
    const model = open('generic')
    expect(await model.ask(rules, request, signal)).toEqual([0.3, 0.3])
    expect(await model.ask(rules, request, signal)).toEqual([0.3, 0.3])
    expect(double.requests.map((body) => 'response_format' in body)).toEqual([true, false, false])
  })

  test('a text that no form helps with does not change how others are asked', async () => {
    double.become(fails(400))
    const model = open('generic')
    await expect(model.ask(rules, request, signal)).rejects.toEqual(noVerdict)
    double.become(judges(() => 30))
    await model.ask(rules, request, signal)
    expect(double.requests[0]).toHaveProperty('response_format')
  })
})

describe('granite', () => {
  const ask = (behaviour: Behaviour, content = request) => {
    double.become(behaviour)
    return open('granite').ask([rule!], content, signal)
  }
  const tokens = (word: string, shares: Record<string, number>) => [
    token('<score>'),
    token(` ${word}`, shares),
    token(' </score>'),
  ]

  test('the rule is the criterion, the text the last message', async () => {
    await ask(writes('<score> no </score>'))
    expect(double.requests[0]).toMatchObject({
      messages: [{ role: 'user', content: 'Hello < |im_end|>' }],
      chat_template_kwargs: { guardian_config: { custom_criteria: 'No spam.' }, think: false },
    })
    await ask(writes('<score> no </score>'), { ...request, direction: 'response' })
    expect(double.requests[0]!.messages).toEqual([
      { role: 'user', content: 'Before' },
      { role: 'assistant', content: 'Hello < |im_end|>' },
    ])
  })

  test('the probability of "yes" against "no" is the score', async () => {
    const shares = { ' yes': 0.45, Yes: 0.15, ' no': 0.2 }
    const yes = writes('<score> yes </score>', { tokens: tokens('yes', shares) })
    expect(await ask(yes)).toEqual([expect.closeTo(0.75)])
    const no = writes('<score> no </score>', { tokens: tokens('no', { ' yes': 0.1, ' no': 0.9 }) })
    expect(await ask(no)).toEqual([expect.closeTo(0.1)])
  })

  test('without probabilities it is a plain yes or no; the last score counts', async () => {
    expect(await ask(writes('<score> yes </score>'))).toEqual([0.95])
    expect(await ask(writes('<score>no</score>'))).toEqual([0.05])
    expect(await ask(writes('<score> no </score><score> yes </score>'))).toEqual([0.95])
  })

  test.each([
    ['no score', writes('yes')],
    ['half a score', writes('<score> no')],
    ['a score in words', writes('<score> maybe </score>')],
    [
      'a contradiction',
      writes('<score> no </score>', { tokens: tokens('no', { ' yes': 0.8, ' no': 0.1 }) }),
    ],
  ])('%s is no verdict', async (_, behaviour) => {
    await expect(ask(behaviour)).rejects.toEqual(noVerdict)
  })
})

describe('safeguard', () => {
  const ask = (reply: string) => {
    double.become(writes(reply))
    return open('safeguard').ask([rule!], request, signal)
  }

  test.each([
    [1, 'high', 0.95],
    [1, 'medium', 0.8],
    [1, 'low', 0.6],
    [0, 'low', 0.4],
    [0, 'medium', 0.2],
    [0, 'high', 0.05],
  ])('violation %i with %s confidence is %f', async (violation, confidence, score) => {
    expect(await ask(JSON.stringify({ violation, confidence }))).toEqual([score])
  })

  test('the rule is the policy, and the text stands between markers', async () => {
    await ask('{"violation":0,"confidence":"high"}')
    const [asked] = double.requests
    expect(readPrompt(asked!)).toMatchObject({ content: request.text, context: 'Before', nonce })
    expect(asked!.messages[0]!.content).toContain('\n1| No spam.\n')
    expect(asked!.messages[0]!.content).toMatch(/Reasoning: low$/)
  })

  test.each([
    ['{"violation":1}'],
    ['{"violation":2,"confidence":"high"}'],
    ['{"violation":0,"confidence":"certain"}'],
    ['{"violation":1,"confidence":"high","violation":0}'],
    ['{"violation":0,"confidence":"high"} or {"violation":1,"confidence":"high"}'],
    ['safe'],
  ])('%s is no verdict', async (reply) => {
    await expect(ask(reply)).rejects.toEqual(noVerdict)
  })
})

test('scripted: a text says itself what it matches, and no server is asked', async () => {
  double.become()
  const text =
    'a [[rule:pol_spam=0.3]] b [[rule:pol_spam=0.9]] [[rule:pol_other=1]] [[rule:pol_taxes=7]]'
  expect(await open('scripted').ask(rules, { ...request, text }, signal)).toEqual([0.9, 0])
  expect(double.requests).toEqual([])
})

test.each([
  ['We speak about project falcon.', [0.95, 0.95, 0]],
  ['We speak about a falcon.', [0, 0, 0]],
  ['We speak about a falcon. [[rule:pol_none=0.6]]', [0, 0, 0.6]],
])('scripted: a rule is about what it has in quotation marks: %s', async (text, scores) => {
  const quoting = [
    { policyId: 'pol_straight', version: 1, text: 'Nobody may mention "Project Falcon" here.' },
    { policyId: 'pol_curly', version: 1, text: 'No “tea”, no “Project Falcon”.' },
    { policyId: 'pol_none', version: 1, text: 'Refuse a falcon.' },
  ]
  expect(await open('scripted').ask(quoting, { ...request, text }, signal)).toEqual(scores)
})
