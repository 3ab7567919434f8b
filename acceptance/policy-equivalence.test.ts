import { createClient } from '@gatehouse/contract/client'
import { createPolicy, publishPolicy, updatePolicy } from '@gatehouse/contract/policy'
import fc from 'fast-check'
import { expect, test } from 'vitest'

import { channelsInBody, channelsInStream, channelsOf } from './support/policies/channels.ts'
import {
  type Condition,
  findCut,
  normalise,
  type Place,
  say,
} from './support/policies/conditions.ts'
import { type Answer, ask, foldedCall, formats, type Format } from './support/streams/call.ts'
import { useStack } from './support/use-stack.ts'

// A caller gets of an answer what its rules allow, whatever the format, streamed or plain. The rules are evaluated here
// once more, from their meaning alone.

const rounds = 5
const answersPerRound = 30
const atOnce = 6
const seed = Number(process.env['EQUIVALENCE_SEED'] ?? Date.now() % 2 ** 31)

const models: Record<Format, string> = {
  messages: 'claude-scripted',
  chat: 'chat-scripted',
  responses: 'responses-scripted',
}
const stack = useStack({ paidUsd: '1000' })

const words = fc.constantFrom(
  'ab',
  'cab',
  'x',
  'some',
  'words',
  'e\u0301t',
  '\u200bs\u200becret',
  '😀',
  'ﬁne',
  '42',
  'aab',
)
const text = fc
  .tuple(
    fc.array(words, { minLength: 1, maxLength: 25 }),
    fc.constantFrom(' ', ' ', '  ', '\u00a0', ''),
  )
  .map(([all, space]) => all.join(space))
const value = fc.oneof(text, fc.constantFrom('say "ab"', 'c:\\ab\n', 4111, true, null))
const input = fc
  .array(fc.tuple(value, fc.boolean()), { maxLength: 3 })
  .map((all) =>
    Object.fromEntries(all.map(([one, isDeep], index) => [`k${index}`, isDeep ? [one] : one])),
  )
const answers = fc.record(
  {
    format: fc.constantFrom(...formats),
    text,
    thinking: text,
    inputs: fc.array(input, { maxLength: 2 }),
    delivery: fc.constantFrom({}, { coalesce: true }, { splitBytes: 29 }, { pieceTokens: 3 }),
    isFolded: fc.boolean(),
  },
  { requiredKeys: ['format', 'text', 'inputs', 'delivery', 'isFolded'] },
)

const atom: fc.Arbitrary<Condition> = fc.oneof(
  fc
    .constantFrom(
      '\\bab\\b',
      's.{0,6}t',
      '(?i)SECRET',
      '4[0-9]{3}',
      '^x',
      '\\p{L}{4} x',
      'é',
      'aab ?cab',
    )
    .map((pattern): Condition => ({ kind: 'pattern', pattern })),
  fc
    .constantFrom('secret', 'fine', '😀 😀', 'é', 'say "', 'look')
    .map((literal): Condition => ({ kind: 'literal', literal })),
  fc.integer({ min: 60, max: 400 }).map((atLeast): Condition => ({ kind: 'size', atLeast })),
)
const condition: fc.Arbitrary<Condition> = fc.oneof(
  { weight: 1, arbitrary: atom },
  {
    weight: 4,
    arbitrary: fc
      .tuple(fc.constantFrom<('and' | 'or')[]>('and', 'and', 'or'), atom, atom)
      .map(([kind, one, other]): Condition => ({ kind, parts: [one, other] })),
  },
)
const ruleSets = fc.tuple(condition, condition)

const sample = <T>(arbitrary: fc.Arbitrary<T>, count: number, salt: number) =>
  fc.sample(arbitrary, { seed: seed + salt, numRuns: count })

type Said = typeof answers extends fc.Arbitrary<infer One> ? One : never
type Rule = { id: string; condition: Condition }

/** Makes a policy for each rule, and then gives them new rules, which are in force when this resolves. */
function createPublisher() {
  const { base_url, admin_key } = stack().description
  const client = createClient({ baseUrl: base_url, credential: admin_key })
  const made: { id: string; revision: number }[] = []
  let round = 0
  return async (conditions: readonly Condition[]): Promise<Rule[]> => {
    round++
    for (const [index, one] of conditions.entries()) {
      // Only a draft that has changed can be published, also where chance repeats a rule.
      const rule = `cel: ${say(one)} || model == "none ${round}"`
      const known = made[index]
      const draft = known
        ? await client.call(updatePolicy, {
            params: { policy_id: known.id },
            body: { revision: known.revision, rule },
          })
        : await client.call(createPolicy, {
            body: {
              name: `Rule ${index}`,
              rule,
              mode: 'enforcing',
              direction: 'response',
              scope: 'organization',
            },
          })
      const isLast = index === conditions.length - 1
      const { id, revision } = await client.call(publishPolicy, {
        params: { policy_id: draft.id },
        query: isLast ? { wait: 'applied' } : {},
        body: { revision: draft.revision },
      })
      made[index] = { id, revision }
    }
    return conditions.map((one, index) => ({ id: made[index]!.id, condition: one }))
  }
}

function call({ format, inputs, delivery, isFolded, ...said }: Said, isStreamed: boolean) {
  const { base_url: baseUrl, project_key: credential } = stack().description
  const toolCalls = inputs.map((one, index) => ({ name: nameOf(index), arguments: one }))
  const script = { ...said, ...delivery, ...(inputs.length > 0 && { toolCalls }) }
  const body = !isStreamed && isFolded ? foldedCall[format] : {}
  return ask({ baseUrl, credential }, { format, model: models[format], script, isStreamed, body })
}

const nameOf = (index: number) => ['look', 'send'][index] ?? 'ring'
const blockingPolicy = (answer: Answer) => /The policy (pol_[0-9a-z]{24}) of/.exec(answer.text)?.[1]

/** The rule with the smallest cut; several where they are equal. */
function judge(rules: readonly Rule[], channels: readonly string[]) {
  const cuts = rules.flatMap(({ id, condition: one }) => {
    const cut = findCut(one, channels)
    return cut ? [{ id, cut }] : []
  })
  const first = cuts.toSorted((one, other) => compare(one.cut, other.cut))[0]?.cut
  if (!first) return null
  return {
    cut: first,
    ids: cuts.filter(({ cut }) => compare(cut, first) === 0).map(({ id }) => id),
  }
}

const compare = (one: Place, other: Place) =>
  one.channel - other.channel || one.offset - other.offset

/** Calls twice, and expects of both what the rules say. Returns whether the answer was blocked. */
async function expectSame(said: Said, rules: readonly Rule[]): Promise<boolean> {
  const { thinking, text: spoken } = said
  const calls = said.inputs.map((one, index) => ({ name: nameOf(index), raw: JSON.stringify(one) }))
  const channels = channelsOf({ thinking, text: spoken, calls })
  const verdict = judge(rules, channels)
  // A plain Chat answer has its text before the thoughts, so that another rule may be the first to match.
  const other =
    said.format === 'chat'
      ? channelsOf({ thinking: spoken, text: thinking ?? '', calls })
      : channels
  const streamed = await call(said, true)
  const plain = await call(said, false)
  const told = JSON.stringify({ seed, said, rules: rules.map(({ condition: one }) => say(one)) })
  const received = channelsInStream(streamed.text, said.format)
  if (!verdict) {
    expect([streamed.status, plain.status], told).toEqual([200, 200])
    expect(received, told).toEqual(channels)
    expect(channelsInBody(plain.text, said.format), told).toEqual(channels)
    return false
  }
  expect(plain.status, told).toBe(400)
  const plainIds = [...verdict.ids, ...(judge(rules, other)?.ids ?? [])]
  expect(plainIds, told).toContain(blockingPolicy(plain))
  expect(verdict.ids, told).toContain(blockingPolicy(streamed))
  expect(plain.text, told).not.toContain('"usage"')
  for (const [index, one] of received.entries()) {
    expect(channels[index]?.startsWith(one), told).toBe(true)
    const { channel, offset } = verdict.cut
    const mayLeave = index < channel ? Infinity : index === channel ? offset : 0
    expect(normalise(one).length, `${told} ${JSON.stringify(received)}`).toBeLessThanOrEqual(
      mayLeave,
    )
  }
  return true
}

test('every caller gets the same verdict, and nothing from the cut on', async () => {
  const publish = createPublisher()
  let [blocked, passed] = [0, 0]
  for (const [round, conditions] of sample(ruleSets, rounds, 0).entries()) {
    const rules = await publish(conditions)
    const all = sample(answers, answersPerRound, 1 + round)
    for (let at = 0; at < all.length; at += atOnce) {
      const outcomes = await Promise.all(
        all.slice(at, at + atOnce).map((said) => expectSame(said, rules)),
      )
      blocked += outcomes.filter(Boolean).length
      passed += outcomes.filter((isBlocked) => !isBlocked).length
    }
  }
  console.log(`equivalence: seed ${seed}, ${blocked} answers blocked, ${passed} passed`)
  expect(blocked).toBeGreaterThan(0)
  expect(passed).toBeGreaterThan(0)
})
