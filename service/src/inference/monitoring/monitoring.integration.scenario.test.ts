import { setTimeout as sleep } from 'node:timers/promises'

import { expect, test } from 'vitest'

import {
  type Behaviour,
  fails,
  hangsUp,
  judges,
  staysSilent,
} from '#moderation/testing/judge-double.ts'
import { completion, sendPlain, sendStream } from '#testing/plain-calls.ts'

import { prepareJudgedCalls } from './testing/judged-calls.ts'

// Policies in plain language that only monitor: what callers, the judge and the audit log see of them.

const patience = { timeout: 60_000 }

/** Finds fault with what is rude. */
const judgesRudeness = judges((_, content) => (content.includes('idiot') ? 90 : 5))

test.each([true, false])(
  'a match is an event of its own, after the call (streamed: %s)',
  patience,
  async (stream) => {
    const calls = await prepareJudgedCalls()
    calls.double.become(judgesRudeness)
    calls.upstream.behave = (response) =>
      stream ? sendStream(response, 'You idiot.') : sendPlain(response, completion('You idiot.'))
    const policyId = await calls.putInForce({ direction: 'both' })
    const { status, text } = await calls.ask({ ...calls.say('What an idiot!'), stream })
    expect([status, text.includes('You idiot.')]).toEqual([200, true])

    const [event] = await calls.waitForEvents(1)
    const [call] = await calls.eventsOf('call')
    expect(call?.header).toMatchObject({ outcome: 'completed', decision: 'allow' })
    expect(call?.header).not.toHaveProperty('matches')
    expect(call?.header).not.toHaveProperty('policies_unevaluated')
    const { request_id, project_id, actor, model, policy_target, policy_epoch } = call!.header
    const { actor_type, project_label } = call!.header
    expect([actor_type, project_label]).toEqual(['project_key', 'Default'])
    const match = { policy_id: policyId, version: 1, mode: 'monitoring', score: 9000 }
    expect(event?.header).toEqual({
      phase: 'monitoring',
      call_event_id: call?.id,
      request_id,
      project_id,
      project_label,
      actor,
      actor_type,
      model,
      policy_target,
      policy_epoch,
      decision: 'allow',
      effective_decision: 'allow',
      enforced: false,
      reason_code: null,
      policy_id: null,
      policy_name: null,
      version: null,
      matches: ['request', 'response'].map((direction) => ({
        ...match,
        direction,
        threshold: 5000,
      })),
    })
    expect(event?.payload).toBe('{"judge":{"id":"generic/judge","calibration":"identity"}}')
    const counted = { policy_id: policyId, version: 1, decision: 'allow', mode: 'monitoring' }
    expect(await calls.decisions()).toEqual([
      { ...counted, direction: 'request', count: '1' },
      { ...counted, direction: 'response', count: '1' },
    ])
    expect(await calls.metric('gatehouse_monitored_calls_total')).toEqual({ matched: 1 })
  },
)

test('what matches nothing leaves no event, and is known the next time', patience, async () => {
  const calls = await prepareJudgedCalls()
  calls.double.become(judgesRudeness)
  calls.upstream.behave = (response) => sendPlain(response, completion('Hello.'))
  await calls.putInForce({ direction: 'both' })
  await calls.ask(calls.say('Good morning.'))
  await expect
    .poll(() => calls.metric('gatehouse_monitored_calls_total'))
    .toMatchObject({ clear: 1 })
  expect(calls.double.requests).toHaveLength(2)
  await calls.ask(calls.say('Good morning.'))
  await expect
    .poll(() => calls.metric('gatehouse_monitored_calls_total'))
    .toMatchObject({ clear: 2 })
  expect(calls.double.requests).toHaveLength(2)
  expect(await calls.eventsOf('monitoring')).toEqual([])
})

test('no judge is asked about a count of tokens, which its event says', patience, async () => {
  const calls = await prepareJudgedCalls()
  calls.double.become(judgesRudeness)
  const policyId = await calls.putInForce({ direction: 'both' })
  const counted = await calls.ask(calls.say('What an idiot!'), '/v1/messages/count_tokens')
  expect(counted.status).toBe(200)
  const [event] = await calls.eventsOf('call')
  expect(event?.header).toMatchObject({
    policy_target: 'messages.count_tokens',
    policies_unevaluated: [policyId],
  })
  await sleep(100)
  expect(calls.double.requests).toEqual([])
  expect(await calls.eventsOf('monitoring')).toEqual([])
})

test('the judge is asked only where the gate is true', patience, async () => {
  const calls = await prepareJudgedCalls()
  calls.double.become(judges(() => 90))
  calls.upstream.behave = (response) => sendPlain(response, completion('Hello.'))
  await calls.putInForce({ rule: 'when: text.contains("boss")\nNobody may be rude.' })
  await calls.ask(calls.say('Dear friend.'))
  await calls.ask(calls.say('Dear boss.'))
  const events = await calls.waitForEvents(1)
  expect(events.map(({ header }) => header['matches'])).toMatchObject([[{ direction: 'request' }]])
  expect(calls.double.requests).toHaveLength(1)
})

test('a gate that has no value is listed in the event of the call', patience, async () => {
  const calls = await prepareJudgedCalls()
  calls.upstream.behave = (response) => sendPlain(response, completion('Hello.'))
  const rule = 'when: 1 / (input_tokens - input_tokens) > 0\nNobody may be rude.'
  const policyId = await calls.putInForce({ rule, direction: 'request' })
  await calls.ask()
  const [call] = await calls.eventsOf('call')
  expect(call?.header).toMatchObject({ policies_unevaluated: [policyId] })
  expect(calls.double.requests).toEqual([])
})

test('no judge is asked about a request that is blocked', patience, async () => {
  const calls = await prepareJudgedCalls()
  calls.double.become(judges(() => 90))
  await calls.putInForce({ rule: 'cel: score("hate") > 0.5', mode: 'enforcing' })
  await calls.putInForce({})
  expect((await calls.ask(calls.say('[[cat:hate=0.9]]'))).status).toBe(400)
  await sleep(100)
  expect(calls.double.requests).toEqual([])
})

test('a judge that takes two seconds delays no caller', patience, async () => {
  const calls = await prepareJudgedCalls({ deadline_ms: 5000, hedge_ms: 4900 })
  calls.double.become(async (request, response) => {
    await sleep(2000)
    await judgesRudeness(request, response)
  })
  calls.upstream.behave = (response, number) =>
    number === 2 ? sendStream(response, 'Hi.') : sendPlain(response, completion('Hi.'))
  await calls.putInForce({ direction: 'both' })
  const tookMs: number[] = []
  for (const stream of [false, true]) {
    const sinceMs = performance.now()
    expect((await calls.ask({ ...calls.say(`idiot ${stream}`), stream })).status).toBe(200)
    tookMs.push(performance.now() - sinceMs)
  }
  console.log(`plain ${tookMs[0]?.toFixed(0)} ms, streamed ${tookMs[1]?.toFixed(0)} ms`)
  expect(Math.max(...tookMs)).toBeLessThan(1000)
  expect(await calls.eventsOf('monitoring')).toEqual([])
  expect(await calls.waitForEvents(2)).toHaveLength(2)
})

const failures: readonly [string, Behaviour, string][] = [
  ['hangs up', hangsUp, 'unavailable'],
  ['is silent', staysSilent, 'late'],
  ['answers 401', fails(401), 'misconfigured'],
]

test.each(failures)(
  'a judge that %s changes nothing but the log',
  patience,
  async (_, how, reason) => {
    const calls = await prepareJudgedCalls({ deadline_ms: 400, hedge_ms: 100 })
    calls.double.become(how)
    calls.upstream.behave = (response) => sendPlain(response, completion('Hi.'))
    const policyId = await calls.putInForce({ direction: 'both' })
    expect((await calls.ask()).status).toBe(200)
    const [event] = await calls.waitForEvents(1)
    expect(event?.header).toMatchObject({
      policies_unevaluated: [policyId],
      unevaluated_reason: reason,
    })
    expect(await calls.metric('gatehouse_monitored_calls_total')).toEqual({ failed: 1 })
    expect(await calls.decisions()).toEqual([])
  },
)

test('without a judge, the event of the call lists the policy', patience, async () => {
  const calls = await prepareJudgedCalls(null)
  calls.upstream.behave = (response) => sendPlain(response, completion('Hi.'))
  const policyId = await calls.putInForce({ direction: 'both' })
  expect((await calls.ask()).status).toBe(200)
  const [call] = await calls.eventsOf('call')
  expect(call?.header).toMatchObject({ policies_unevaluated: [policyId] })
})

test('failures of monitoring do not pause the judge of enforcing policies', patience, async () => {
  const calls = await prepareJudgedCalls({ deadline_ms: 400, hedge_ms: 100 })
  calls.upstream.behave = (response) => sendPlain(response, completion('Hi.'))
  calls.double.become((request, response) =>
    request.messages[0]!.content.includes('watched')
      ? hangsUp(request, response)
      : judgesRudeness(request, response),
  )
  await calls.putInForce({ rule: 'This is only watched.', direction: 'request' })
  await calls.putInForce({ mode: 'enforcing', direction: 'request' })
  for (let number = 0; number < 8; number++) await calls.ask(calls.say(`Hello ${number}.`))
  await calls.waitForEvents(8)
  expect(await calls.metric('gatehouse_monitoring_judge_pausing')).toEqual({ '': 1 })
  expect((await calls.ask(calls.say('Good bye.'))).status).toBe(200)
  expect((await calls.ask(calls.say('You idiot.'))).status).toBe(400)
})

test('a text that no judge can read is listed in the event of the call', patience, async () => {
  const calls = await prepareJudgedCalls()
  calls.upstream.behave = (response) => sendPlain(response, completion('Hi.'))
  const policyId = await calls.putInForce({ direction: 'request' })
  expect((await calls.ask(calls.say('word '.repeat(60_001)))).status).toBe(200)
  const [call] = await calls.eventsOf('call')
  expect(call?.header).toMatchObject({ policies_unevaluated: [policyId] })
  expect(calls.double.requests).toEqual([])
})

test(
  'a full queue drops what is new; a stop drops what is left, and says so',
  patience,
  async () => {
    const calls = await prepareJudgedCalls({ deadline_ms: 10_000, hedge_ms: 9900 })
    calls.double.become(staysSilent)
    calls.upstream.behave = (response) => sendPlain(response, completion('Hi.'))
    const policyId = await calls.putInForce({ direction: 'request' })
    // 250 of one organization fit.
    for (let number = 0; number < 251; number += 10) {
      const some = Array.from({ length: 10 }, (_, more) => calls.ask(calls.say(`${number + more}`)))
      for (const { status } of await Promise.all(some)) expect(status).toBe(200)
    }
    const refused = (await calls.eventsOf('call')).filter(
      ({ header }) => 'policies_unevaluated' in header,
    )
    const { dropped = 0, failed = 0 } = await calls.metric('gatehouse_monitored_calls_total')
    // On a slow machine the judge's ten seconds are over for some by now, who have made room for as many.
    expect(dropped).toBeGreaterThanOrEqual(Math.max(1, 10 - failed))
    expect([dropped, dropped <= 10]).toEqual([refused.length, true])
    const waiting = await calls.metric('gatehouse_monitoring_waiting')
    expect(waiting).toEqual({ '': 260 - 4 - dropped - failed })

    const sinceMs = performance.now()
    await calls.app.close()
    await calls.house.stop()
    console.log(`stopped after ${(performance.now() - sinceMs).toFixed(0)} ms`)
    // The judge would take ten seconds for every four.
    expect(performance.now() - sinceMs).toBeLessThan(60_000)
    const events = await calls.eventsOf('monitoring')
    expect(events).toHaveLength(260 - dropped)
    for (const { header } of events) {
      expect(header).toMatchObject({ policies_unevaluated: [policyId] })
    }
    const left = events.filter(({ header }) => header['unevaluated_reason'] === 'dropped')
    expect(left.length).toBeGreaterThanOrEqual(events.length - failed - 4)
  },
)

test('a process that stops ends what waits, if there is time', patience, async () => {
  const calls = await prepareJudgedCalls({ deadline_ms: 5000, hedge_ms: 4900 })
  calls.double.become(async (request, response) => {
    await sleep(300)
    await judgesRudeness(request, response)
  })
  calls.upstream.behave = (response) => sendPlain(response, completion('Hi.'))
  await calls.putInForce({ direction: 'request' })
  const some = Array.from({ length: 12 }, (_, more) => calls.ask(calls.say(`You idiot ${more}.`)))
  for (const { status } of await Promise.all(some)) expect(status).toBe(200)
  await calls.app.close()
  await calls.house.stop()
  const events = await calls.eventsOf('monitoring')
  expect(events.map(({ header }) => header['matches'])).toMatchObject(
    Array.from({ length: 12 }, () => [{ score: 9000 }]),
  )
})
