import { expect, onTestFinished, test } from 'vitest'

import { openEveryWay } from '#inference/enforcement/testing/every-way.ts'
import { writeModeration } from '#inference/enforcement/testing/moderated-calls.ts'
import {
  inAnswer,
  inRequest,
  outcomesOf,
  ways,
} from '#inference/enforcement/testing/outcomes-on-every-way.ts'
import {
  type Behaviour,
  breaksOff,
  createJudgeDouble,
  fails,
  hangsUp,
  judges,
  says,
  staysSilent,
} from '#moderation/testing/judge-double.ts'

// Rules in plain language on every way to a model. To the scripted judge a text says itself what it is, as in
// [[rule:<policy id>=0.9]].

const patience = { timeout: 300_000 }

const scorers = [{ name: 'scripted', adapter: 'scripted' }]

test.each([
  ['Nobody may be rude.', '', 'words'],
  ['when: text.contains("boss")\nNobody may be rude.', 'boss', 'words'],
  ['when: score("hate") > 0.5\nNobody may be rude.', '[[cat:hate=0.9]]', '[[cat:hate=0.1]]'],
  ['when: !text.contains("friend")\nNobody may be rude.', 'words', 'friend'],
])('%j blocks requests and answers on every way', patience, async (rule, open, closed) => {
  const { ask, putInForce, policyId } = await openEveryWay(
    await writeModeration({ scorers, judge: { adapter: 'scripted' } }),
  )
  await putInForce({ mode: 'enforcing', rule, direction: 'both' }, false)
  const mark = (score: number) => `Some words [[rule:${policyId()}=${score}]]`
  for (const place of [inRequest, inAnswer]) {
    expect(await outcomesOf(ask, place(`${mark(0.9)} ${open}.`))).toEqual(new Set(['blocked']))
    expect(await outcomesOf(ask, place(`${mark(0.4)} ${open}.`))).toEqual(new Set(['served']))
    if (rule.startsWith('when:')) {
      expect(await outcomesOf(ask, place(`${mark(0.9)} ${closed}.`))).toEqual(new Set(['served']))
    }
  }
})

async function startJudge(onError: 'refuse' | 'allow') {
  const double = await createJudgeDouble()
  onTestFinished(() => double.close())
  const judge = { adapter: 'generic', base_url: double.baseUrl, model: 'judge', on_error: onError }
  const environment = await writeModeration({
    scorers,
    judge: { ...judge, deadline_ms: 400, hedge_ms: 100 },
  })
  const every = await openEveryWay(environment)
  await every.putInForce({ mode: 'enforcing', rule: 'Nobody may be rude.' }, false)
  return { double, ...every }
}

const failures: readonly [string, Behaviour][] = [
  ['is silent', staysSilent],
  ['hangs up', hangsUp],
  ['breaks off', breaksOff],
  ['answers 500', fails(500)],
  ['answers 429', fails(429)],
]
const refusals: readonly [string, Behaviour][] = [
  ['talks nonsense', says('{"choices":[{"message":{"content":"0"}}]}')],
  ...[400, 401, 403, 404].map((status): [string, Behaviour] => [
    `answers ${status}`,
    fails(status),
  ]),
]

test.each([...failures, ...refusals])('503: a judge that %s', patience, async (_, behaviour) => {
  const { double, ask } = await startJudge('refuse')
  double.become(judges(() => 0))
  expect(await ask(ways[0]!, { asked: 'Hello.' })).toBe('served')
  double.become(behaviour)
  const answer = await ask(ways[0]!, { asked: 'Another text.' })
  expect(answer).toContain('policy_evaluation_unavailable')
})

test.each(failures)('on_error allow: a judge that %s lets calls pass', patience, async (_, how) => {
  const { double, ask } = await startJudge('allow')
  double.become(how)
  expect(await ask(ways[0]!, { asked: 'Hello.' })).toBe('served')
})

test.each(refusals)('503 also with on_error allow: a judge that %s', patience, async (_, how) => {
  const { double, ask } = await startJudge('allow')
  double.become(how)
  expect(await ask(ways[0]!, { asked: 'Hello.' })).toContain('policy_evaluation_unavailable')
})

test('a judge that reads the prompt decides about requests and answers', patience, async () => {
  const { double, ask } = await startJudge('refuse')
  double.become(judges((_, content) => (content.includes('idiot') ? 90 : 5)))
  expect(await ask(ways[0]!, inRequest('You idiot.'))).toBe('blocked')
  expect(await ask(ways[0]!, inAnswer('You idiot.'))).toBe('blocked')
  expect(await ask(ways[0]!, inAnswer('You friend.'))).toBe('served')
})
