import { expect, onTestFinished, test } from 'vitest'

import {
  prepareModeratedCalls,
  writeModeration,
} from '#inference/enforcement/testing/moderated-calls.ts'
import { createScorerDouble } from '#moderation/testing/scorer-double.ts'
import {
  completion,
  outcomesOf,
  preparePlainCalls,
  sendPlain,
  sendStream,
} from '#testing/plain-calls.ts'

// What becomes of calls while their scorer fails, over real connections.

async function prepare(members: object = {}) {
  const scorer = await createScorerDouble()
  onTestFinished(() => scorer[Symbol.asyncDispose]())
  const { baseUrl: base_url } = scorer
  const entry = { name: 'remote', adapter: 'openai', base_url, model: 'omni', deadline_ms: 300 }
  /** Each call says something else, because scores are remembered. */
  return { scorer, ...(await prepareModeratedCalls({ scorers: [entry], ...members })) }
}

const failures = [
  'hangs',
  'hangs up',
  'stops within its answer',
  'answers half of its JSON',
  'answers for other texts',
  'answers without end',
  429,
  500,
  503,
] as const

test.each(failures)('a scorer that %s: nothing passes unseen, and it recovers', async (failure) => {
  const { scorer, calls, ask } = await prepare()
  expect(await ask('First.')).toBe('200 answered')
  scorer.become(failure)
  expect(await ask('Second.')).toBe('503 policy_evaluation_unavailable')
  expect(await ask('Third.', { stream: true })).toBe('503 policy_evaluation_unavailable')
  expect(calls.upstream.bodies).toHaveLength(1)
  scorer.become('answers')
  expect(await ask('Fourth.')).toBe('200 answered')
  // Calls that were refused are free, and leave nothing held.
  const { charged, held } = await outcomesOf(calls)
  expect([charged.filter((amount) => amount > 0).length, held]).toEqual([2, 0])
})

test('the operator may let calls pass in an outage, which their events tell', async () => {
  const { scorer, ask, lastEvent } = await prepare({ degraded: 'allow' })
  scorer.become(500)
  expect(await ask('A harmless question.')).toBe('200 answered')
  expect(await lastEvent()).toMatchObject({ moderation_degraded: true, decision: 'allow' })
})

test('texts that the scorer does not take are refused as such, whatever the operator allows', async () => {
  const { scorer, calls, ask } = await prepare({ degraded: 'allow' })
  scorer.become(400)
  expect(await ask('An odd text.')).toBe('400 moderation_blocked')
  scorer.become('answers half of its JSON')
  expect(await ask('Another odd text.')).toBe('503 policy_evaluation_unavailable')
  expect(calls.upstream.bodies).toHaveLength(0)
})

test('an event does not say that a refused call went on without a scorer', async () => {
  const { scorer, ask, lastEvent } = await prepare()
  scorer.become(500)
  expect(await ask('A harmless question.')).toBe('503 policy_evaluation_unavailable')
  const event = await lastEvent()
  expect(event).toMatchObject({ decision: 'refuse' })
  expect(event).not.toHaveProperty('moderation_degraded')
})

test('a long answer waits for a slow scorer, and its end is judged like its beginning', async () => {
  const { scorer, calls, ask } = await prepare()
  scorer.answerAfter(100)
  const text = `An answer. ${'Some more words. '.repeat(6000)}`
  for (const stream of [true, false]) {
    for (const end of ['', '[[cat:self-harm=0.9]]']) {
      calls.upstream.behave = (response) =>
        stream ? sendStream(response, text + end) : sendPlain(response, completion(text + end))
      const expected = end === '' ? '200 answered' : '400 moderation_blocked'
      expect(await ask(`Go ${stream} ${end}.`.replace('[[', ''), { stream })).toBe(expected)
    }
  }
})

test.each([401, 403, 404])(
  'a scorer that answers %i is no outage: calls are refused',
  async (status) => {
    const { scorer, calls, ask } = await prepare({ degraded: 'allow' })
    scorer.become(status)
    for (let number = 0; number < 8; number++) {
      expect(await ask(`Question ${number}.`)).toBe('503 policy_evaluation_unavailable')
    }
    expect(calls.upstream.bodies).toHaveLength(0)
  },
)

test.each([401, 500] as const)(
  'an image alone does not pass unseen either while the scorer answers %i',
  async (status) => {
    const { scorer, calls, ask } = await prepare()
    const url = 'data:image/png;base64,iVBORw0KGgo='
    const messages = [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }]
    scorer.become(status)
    expect(await ask('', { messages })).toBe('503 policy_evaluation_unavailable')
    expect(calls.upstream.bodies).toHaveLength(0)
  },
)

test('an answer that cannot be scored is not sent, and is free', async () => {
  const { scorer, calls, ask } = await prepare()
  for (const stream of [true, false]) {
    scorer.become('answers')
    calls.upstream.behave = (response) => {
      scorer.become(500)
      if (stream) sendStream(response, 'An answer.')
      else sendPlain(response, completion('An answer.'))
    }
    expect(await ask(`Go ${stream}.`, { stream })).toBe('503 policy_evaluation_unavailable')
  }
  const { charged, held } = await outcomesOf(calls)
  expect([charged.filter((amount) => amount > 0), held]).toEqual([[], 0])
})

test('what was blocked is in the event, and a blocked answer is charged', async () => {
  const { calls, ask, lastEvent } = await prepare()
  expect(await ask('[[cat:self-harm=0.9]]')).toBe('400 moderation_blocked')
  const refused = { outcome: 'blocked', triggered_categories: ['self-harm'], policy_id: null }
  expect(await lastEvent()).toMatchObject({ ...refused, decision: 'refuse' })
  expect((await outcomesOf(calls)).charged.filter((amount) => amount > 0)).toEqual([])
  calls.upstream.behave = (response) =>
    sendPlain(response, completion('[[cat:sexual/minors=0.97]]'))
  expect(await ask('Go.')).toBe('400 moderation_blocked')
  expect(await lastEvent()).toMatchObject({ triggered_categories: ['sexual/minors'] })
  expect((await outcomesOf(calls)).charged.filter((amount) => amount > 0)).toHaveLength(1)
  // What stands behind the place where the answer ended has ended nothing.
  const between = 'Some words. '.repeat(100)
  calls.upstream.behave = (response) =>
    sendPlain(
      response,
      completion(`[[cat:self-harm=0.9]] ${between} [[cat:sexual/minors=0.97]] ${between}`),
    )
  expect(await ask('Go on.')).toBe('400 moderation_blocked')
  expect(await lastEvent()).toMatchObject({ triggered_categories: ['self-harm'] })
})

test('without a scorer calls are refused, unless the local one was accepted', async () => {
  const refusing = await preparePlainCalls({ environment: await writeModeration({}) })
  expect(await refusing.ask()).toMatchObject({ status: 503 })
  expect(refusing.upstream.bodies).toHaveLength(0)
  const accepting = await preparePlainCalls({
    environment: await writeModeration({ accept_local_only: true }),
  })
  accepting.upstream.behave = (response) => sendPlain(response, completion('An answer.'))
  expect(await accepting.ask()).toMatchObject({ status: 200 })
})

test('a part that nothing can score passes and is recorded, or is refused', async () => {
  const file = { filename: 'a.pdf', file_data: 'data:application/pdf;base64,/////w==' }
  const messages = [{ role: 'user', content: [{ type: 'file', file }] }]
  const passing = await prepare()
  expect(await passing.ask('', { messages })).toBe('200 answered')
  expect(await passing.lastEvent()).toMatchObject({ unscored_parts: true })
  const refusing = await prepare({ unscored_parts: 'refuse' })
  expect(await refusing.ask('', { messages })).toBe('400 moderation_blocked')
})
