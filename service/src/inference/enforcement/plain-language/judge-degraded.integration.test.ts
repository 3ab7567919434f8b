import { expect, test } from 'vitest'

import { prepareJudgedCalls } from '#inference/monitoring/testing/judged-calls.ts'
import { fails, judges } from '#moderation/testing/judge-double.ts'
import { completion, sendPlain, sendStream } from '#testing/plain-calls.ts'

// What the event of a call says when the judge of enforcing policies fails and the operator lets calls pass.

const settings = { deadline_ms: 400, hedge_ms: 100, on_error: 'allow' }
const patience = { timeout: 60_000 }

test.each(['request', 'response'] as const)(
  'an event says that its call went on without the judge (%s)',
  patience,
  async (direction) => {
    const calls = await prepareJudgedCalls(settings)
    await calls.putInForce({ mode: 'enforcing', direction })
    calls.upstream.behave = (response, number) =>
      number === 2 ? sendStream(response, 'Hello 2.') : sendPlain(response, completion('Hello.'))
    calls.double.become(fails(500))
    for (const stream of [false, true]) {
      expect((await calls.ask({ ...calls.say(`Hello ${stream}.`), stream })).status).toBe(200)
    }
    calls.double.become(judges(() => 5))
    calls.upstream.behave = (response) => sendPlain(response, completion('Good morning.'))
    expect((await calls.ask(calls.say('Good morning.'))).status).toBe(200)
    const events = await calls.eventsOf('call')
    expect(events.map(({ header }) => header['judge_degraded'])).toEqual([true, true, undefined])
    expect(events.map(({ header }) => header['decision'])).toEqual(['allow', 'allow', 'allow'])
  },
)

test('a call that is refused did not go on without the judge', patience, async () => {
  const calls = await prepareJudgedCalls({ ...settings, on_error: 'refuse' })
  await calls.putInForce({ mode: 'enforcing', direction: 'request' })
  calls.double.become(fails(500))
  expect((await calls.ask()).status).toBe(503)
  const [event] = await calls.eventsOf('call')
  expect(event?.header).toMatchObject({ decision: 'refuse' })
  expect(event?.header).not.toHaveProperty('judge_degraded')
})
