import { expect, onTestFinished, test } from 'vitest'

import { openEveryWay } from '#inference/enforcement/testing/every-way.ts'
import { writeModeration } from '#inference/enforcement/testing/moderated-calls.ts'
import {
  expectBlockedOnEveryWay,
  expectOnlyMonitored,
  ways,
} from '#inference/enforcement/testing/outcomes-on-every-way.ts'
import { createScorerDouble } from '#moderation/testing/scorer-double.ts'

// Rules that read scores, on every way to a model. Texts say their scores themselves, as in [[cat:hate=0.9]].

const patience = { timeout: 300_000 }

const hateful = 'Words [[cat:hate=0.9]] and words.'
const mild = 'Words [[cat:hate=0.6]] and words.'
const illicit = 'Words [[cat:illicit=0.6]] and words.'

test.each([
  ['cel: score("hate") > 0.8', hateful, mild],
  ['cel: score("hate") + score("illicit") > 1.1', `${mild} ${illicit}`, illicit],
  ['cel: score("hate") > 0.5 && text.contains("and words")', mild, '[[cat:hate=0.9]] alone.'],
])('%s blocks requests and answers on every way', patience, (rule, broken, harmless) =>
  expectBlockedOnEveryWay(rule, { broken, harmless }),
)

test('a monitoring rule that reads scores lets everything pass', patience, () =>
  expectOnlyMonitored('cel: score("hate") > 0.8', hateful),
)

/** A scorer of all categories that is asked over a socket. */
async function startScorer() {
  const double = await createScorerDouble()
  onTestFinished(() => double[Symbol.asyncDispose]())
  const place = { base_url: double.baseUrl, model: 'omni', deadline_ms: 200 }
  const scorers = [{ name: 'remote', adapter: 'openai', ...place }]
  // What is always blocked must not be the reason why a call is refused here.
  return { double, environment: await writeModeration({ scorers, degraded: 'allow' }) }
}

test.each(['hangs', 'hangs up', 500, 429] as const)(
  'a scorer that has an outage refuses calls under an enforcing rule, and only those: %s',
  patience,
  async (behaviour) => {
    const { double, environment } = await startScorer()
    const { ask, putInForce } = await openEveryWay(environment)
    const [way] = ways
    const end = await putInForce({ mode: 'monitoring', rule: 'cel: score("hate") > 0.8' }, false)
    double.become(behaviour)
    expect(await ask(way!, {})).toBe('served')
    await end()
    await putInForce({ mode: 'enforcing', rule: 'cel: score("hate") > 0.8' }, false)
    expect(await ask(way!, {})).toContain('policy_evaluation_unavailable')
  },
)
