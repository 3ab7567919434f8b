import { retrievePolicy, updatePolicy } from '@gatehouse/contract/policy'
import {
  type PolicyReplay,
  replacePolicyExamples,
  replayPolicy,
} from '@gatehouse/contract/policy-evaluation'
import { expect, test } from 'vitest'

import { judges } from '#moderation/testing/judge-double.ts'
import { completion, sendPlain } from '#testing/plain-calls.ts'

import { prepareJudgedCalls } from './monitoring/testing/judged-calls.ts'

// What drafts of policies would have changed in real calls. Texts say their scores themselves, as in [[cat:hate=0.9]].

const patience = { timeout: 60_000 }
const byHate = 'cel: score("hate")'

async function prepare() {
  const calls = await prepareJudgedCalls()
  calls.upstream.behave = (response) => sendPlain(response, completion('Hello.'))
  const sayHateful = (hate: number) => calls.ask(calls.say(`Some words [[cat:hate=${hate}]].`))

  async function edit(policyId: string, body: object) {
    const params = { policy_id: policyId }
    const read = await calls.send(retrievePolicy, { params })
    const { revision } = read.body as unknown as { revision: number }
    const edited = await calls.send(updatePolicy, { params, body: { revision, ...body } })
    expect(edited.status).toBe(200)
  }
  async function replay(policyId: string, body: object = {}) {
    const answer = await calls.send(replayPolicy, { params: { policy_id: policyId }, body })
    expect(answer.status).toBe(200)
    return answer.body as unknown as PolicyReplay
  }
  /** The changes of a draft, without those that are 0. */
  async function changesOf(policyId: string, draft: object) {
    await edit(policyId, draft)
    const { projects } = await replay(policyId)
    expect(projects.map(({ project_id }) => project_id)).toEqual([calls.organization.projectId])
    const counts = Object.entries(projects[0] ?? {}).filter(([name]) => name !== 'project_id')
    return Object.fromEntries(counts.filter(([, count]) => count !== 0))
  }
  return { ...calls, sayHateful, edit, replay, changesOf }
}

test(
  '200: what is published changes nothing; thresholds, modes, projects and scores are replayed',
  patience,
  async () => {
    const { putInForce, sayHateful, changesOf, replay, send } = await prepare()
    const id = await putInForce({ rule: byHate, mode: 'monitoring', direction: 'both' })
    for (const hate of [0.9, 0.6, 0.6, 0.3, 0]) expect((await sayHateful(hate)).status).toBe(200)
    const published = await replay(id)
    expect(published).toMatchObject({
      result: 'replayed',
      reason: null,
      requests: 5,
      examples: null,
    })
    expect(published.projects).toMatchObject([{ requests: 5, unchanged: 5 }])
    expect((await replay(id, { requests: 2 })).requests).toBe(2)

    const all = { requests: 5 }
    expect(await changesOf(id, { match_threshold_basis_points: 2000 })).toEqual({
      ...all,
      unchanged: 4,
      newly_noted: 1,
    })
    expect(await changesOf(id, { match_threshold_basis_points: 8000, mode: 'enforcing' })).toEqual({
      ...all,
      unchanged: 2,
      newly_refused: 1,
      no_longer_noted: 2,
    })
    expect(await changesOf(id, { scope: 'unattached' })).toEqual({
      ...all,
      unchanged: 2,
      no_longer_noted: 3,
    })
    const rule = 'cel: score("hate") > 0.2 && score("hate") < 0.7'
    const other = { rule, direction: 'request', scope: 'organization', mode: 'monitoring' }
    expect(await changesOf(id, other)).toEqual({
      ...all,
      unchanged: 3,
      newly_noted: 1,
      no_longer_noted: 1,
    })

    const params = { policy_id: id }
    const { body } = await send(retrievePolicy, { params })
    const { revision } = body as unknown as { revision: number }
    const examples = [{ text: 'a flower', direction: 'request', expect: 'must_match' }]
    await send(replacePolicyExamples, { params, body: { revision, examples } })
    await changesOf(id, {})
    const draft = { rule: 'cel: text.contains("flower")', direction: 'both' }
    await send(updatePolicy, { params, body: { revision: revision + 1, ...draft } })
    expect(await replay(id)).toMatchObject({
      result: 'not_replayable',
      reason: expect.stringContaining('The rule is not the published one') as string,
      requests: 0,
      since: null,
      projects: [],
      examples: [{ index: 0, expect: 'must_match', score: 10_000, matched: true }],
    })
  },
)

test(
  'enforcing policies, exact or in plain language, change nothing in their own calls',
  patience,
  async () => {
    const { putInForce, ask, double, replay, changesOf, ...calls } = await prepare()
    double.become(judges((_, content) => (content.includes('idiot') ? 90 : 30)))
    const exact = await putInForce({ rule: 'cel: text.contains("weapon")', mode: 'enforcing' })
    const plain = await putInForce({ mode: 'enforcing', direction: 'request' })
    const watched = await putInForce({ rule: 'Be kind.', direction: 'request' })
    const statuses = []
    for (const text of ['Hello.', 'A weapon.', 'You idiot.']) {
      statuses.push((await ask(calls.say(text))).status)
    }
    calls.upstream.behave = (response) => sendPlain(response, completion('Take this weapon.'))
    statuses.push((await ask(calls.say('Good day.'))).status)
    expect(statuses).toEqual([200, 400, 400, 400])
    for (const id of [exact, plain, watched]) {
      expect((await replay(id)).projects).toMatchObject([{ requests: 4, unchanged: 4 }])
    }
    // Of the requests that were judged, the judge gave one 90 and the others 30.
    expect(await changesOf(plain, { match_threshold_basis_points: 2000 })).toEqual({
      requests: 4,
      unchanged: 1,
      newly_refused: 2,
      unknown: 1,
    })
  },
)

test(
  'calls without policies are not recorded for replays, and a replay has no calls of other organizations',
  patience,
  async () => {
    const { putInForce, sayHateful, replay, eventsOf } = await prepare()
    expect((await sayHateful(0.9)).status).toBe(200)
    const id = await putInForce({ rule: byHate })
    const [event] = await eventsOf('call')
    expect(event?.header).not.toHaveProperty('scores')
    expect(await replay(id)).toMatchObject({ result: 'replayed', requests: 0, since: null })
  },
)
