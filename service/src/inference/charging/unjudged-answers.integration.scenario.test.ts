import { expect, test } from 'vitest'

import { priceOfUsage } from '#testing/plain-calls.ts'

import { prepareFailingCalls } from './testing/failing-calls.ts'
import { failures } from './testing/failures.ts'

// What answers without a verdict cost, and what their callers are told about it.

const failureOf = (name: string) => failures.find((each) => each.name === name)!
const windows = 'Nobody may be rude.'
const whole = 'when: !text.contains("zzzz")\nNobody may be rude.'

test.each(['judge: judges nothing', 'judge: is silent', 'scorer: 500', 'scorer: 400'])(
  'a stream is charged for what has left before its end could not be judged (%s)',
  async (name) => {
    const make = await prepareFailingCalls(windows)
    const failure = failureOf(name)
    const call = { failure, isStreamed: true, model: 'streams', words: 600, failsAt: 500 } as const
    const { delivered, charge, told, code } = await make(call)
    expect(code).toBe('policy_evaluation_unavailable')
    expect(delivered).toBeGreaterThan(100)
    // As the upstream reports it, where it has come to its end in the meantime.
    expect(charge).toBeGreaterThanOrEqual(priceOfUsage)
    expect(told).toBe('charged')
  },
)

test.each([true, false])(
  'an answer that is too long for the judge is charged, although none of it leaves (stream: %s)',
  async (isStreamed) => {
    const make = await prepareFailingCalls(whole)
    const failure = failureOf('judge: too long')
    const call = { failure, isStreamed, model: 'streams', words: 120, failsAt: 0 } as const
    const { delivered, charge, told } = await make(call)
    expect([delivered, told, charge > 0]).toEqual([0, 'charged', true])
  },
)

test.each([true, false])(
  'an outage of the judge is not the caller’s doing: what has not left is free (stream: %s)',
  async (isStreamed) => {
    const make = await prepareFailingCalls(whole)
    const failure = failureOf('judge: answers 500')
    const call = { failure, isStreamed, model: 'streams', words: 120, failsAt: 10 } as const
    expect(await make(call)).toMatchObject({ delivered: 0, told: 'free', charge: 0 })
  },
)
