import type { Stack } from '@gatehouse/tools/start-stack'
import { sizeOf } from '@gatehouse/tools/testing/size-of'
import { expect, onTestFinished, test } from 'vitest'

import { openConversation } from './support/conversations/converse.ts'
import {
  forbidden,
  markOf,
  marksIn,
  type Plan,
  planConversation,
  readMark,
} from './support/conversations/plan.ts'
import { hardlyLimited } from './support/hardly-limited.ts'
import { startScorerDouble, writeModerationFile } from './support/moderation/scorer-double.ts'
import { eventually, putInForce } from './support/policies/enforcing.ts'
import { applyConfig } from './support/policies/gateway-config.ts'
import type { Target } from './support/streams/call.ts'
import { useStack } from './support/use-stack.ts'

// A caller that sends the model's answers back is never refused for them: what may leave as an answer may come back as history.
// HONEST_CONVERSATIONS sets how many there are, HONEST_SEED repeats a run.

const count = sizeOf({ usual: 40, long: 2000, variable: 'HONEST_CONVERSATIONS' })
const seed = Number(process.env['HONEST_SEED'] ?? Date.now() % 2 ** 31)
const atOnce = 6
/** How many conversations continue on a process that has not seen their earlier turns. */
const coldCount = Math.max(3, Math.ceil(count / 20))
const longest = 20
/** How many texts the scorer takes in one call. */
const groupMost = 32

/** What the scorer was asked in one turn: about texts of this turn, and in calls of their own about those of earlier ones. */
type Asked = { own: number; earlier: number; earlierTexts: number }

const asked = new Map<string, Asked>()
const turnNow = new Map<string, number>()

function countCall(texts: readonly string[]) {
  const marks = [...marksIn(texts.join('\n'))]
  const [first] = marks
  if (first === undefined) return // what all conversations have in common
  const { id } = readMark(first)
  const now = markOf(id, turnNow.get(id) ?? 0)
  const counts = asked.get(now) ?? { own: 0, earlier: 0, earlierTexts: 0 }
  asked.set(now, counts)
  if (marks.includes(now)) {
    counts.own++
    return
  }
  counts.earlier++
  counts.earlierTexts += texts.length
}

const scorer = await startScorerDouble({ onCall: countCall })
const entry = { name: 'remote', adapter: 'openai', base_url: scorer.baseUrl, model: 'omni' }
const environment = await writeModerationFile({
  // The scorer is in this process, which is busy.
  scorers: [{ ...entry, deadline_ms: 10_000 }],
  judge: { adapter: 'scripted' },
})
// Credits play no part here, and their writes would only slow the test down.
const stack = useStack({
  paidUsd: '5000',
  environment: { ...environment, ...hardlyLimited(), BILLING: 'off' },
})

/** Everything that an organization can have against answers. */
async function forbid(of: Stack) {
  await applyConfig(of, {
    rules: { denylist: [forbidden.denylist], flagged_categories: ['hate'], redact: false },
  })
  const rules = [
    { rule: `cel: text.contains("${forbidden.response}")`, direction: 'response' },
    { rule: `cel: text.contains("${forbidden.both}")`, direction: 'both' },
    { rule: `cel: text.containsAny(["${forbidden.list}", "never ever"])`, direction: 'both' },
    { rule: 'cel: score("hate") > 0.5', direction: 'response' },
    { rule: 'cel: !text.contains("the")', direction: 'response' },
    { rule: 'cel: text.size() < 8', direction: 'response' },
    { rule: 'Nobody may be rude.', direction: 'response' },
    { rule: 'Nobody may be loud.', direction: 'both' },
  ] as const
  for (const [number, rule] of rules.entries()) {
    await putInForce(of, { ...rule, name: `Rule ${number + 1}` })
  }
}

/** Holds all of the conversations, some at a time. */
async function holdAll(plans: readonly Plan[], hold: (plan: Plan) => Promise<void>) {
  const waiting = plans.values()
  const lines = Array.from({ length: atOnce }, async () => {
    for (const plan of waiting) await hold(plan)
  })
  await Promise.all(lines)
}

const target = (): Target => {
  const { base_url: baseUrl, project_key: credential } = stack().description
  return { baseUrl, credential }
}

const nothing: Asked = { own: 0, earlier: 0, earlierTexts: 0 }

const askedIn = ({ id, turns }: Plan) =>
  turns.map((_, turn) => asked.get(markOf(id, turn)) ?? nothing)

const sumOf = (turns: readonly Asked[], member: keyof Asked) =>
  turns.reduce((sum, turn) => sum + turn[member], 0)

/** Only for a hang. */
const timeoutMs = 300_000 + count * 2000

/** The last turn of a cold conversation is the first that the other process sees of it. */
const isCold = (number: number) => number < coldCount

test(
  `${count} conversations are held to their end, and earlier answers cost hardly any call of the scorer (seed ${seed})`,
  async () => {
    await forbid(stack())
    const cold = await startColdProcess()
    const plans = Array.from({ length: count }, (_, number) =>
      planConversation(seed, number, isCold(number) ? longest : 1),
    )
    await holdAll(plans, async (plan) => {
      const conversation = openConversation(plan, target())
      const isMoved = isCold(plans.indexOf(plan))
      for (const [number, turn] of plan.turns.entries()) {
        turnNow.set(plan.id, number)
        if (isMoved && number === longest - 1) conversation.moveTo(cold)
        await conversation.take(turn, number)
      }
    })
    const coldPlans = plans.filter((_, number) => isCold(number))
    const last = coldPlans.map((plan) => askedIn(plan)[longest - 1] ?? nothing)
    const turns = plans.flatMap(askedIn).filter((each) => !last.includes(each))
    console.log(
      `${count} conversations, ${turns.length + last.length} turns (seed ${seed}): ${sumOf(turns, 'own')} calls of the scorer for what was new, ${sumOf(turns, 'earlier')} for earlier turns; a process that had not seen the ${longest - 1} turns before: ${JSON.stringify(last)}`,
    )
    // The request and the answer of each turn are scored.
    expect(turns.filter(({ own }) => own < 2)).toEqual([])
    expect(turns.filter(({ earlier }) => earlier > 1)).toEqual([])
    for (const { earlier, earlierTexts } of last) {
      expect(earlierTexts).toBeGreaterThan(longest / 2)
      // Requests and earlier answers are scored apart.
      expect(earlier).toBeLessThanOrEqual(1 + Math.ceil(earlierTexts / groupMost))
    }
  },
  timeoutMs,
)

async function startColdProcess(): Promise<string> {
  const { baseUrl, child } = await stack().startApi('api-cold')
  onTestFinished(() => void child.kill('SIGTERM'))
  const readReadiness = async () => (await fetch(`${baseUrl}/health/ready`)).status
  await expect.poll(readReadiness, eventually).toBe(200)
  return baseUrl
}
