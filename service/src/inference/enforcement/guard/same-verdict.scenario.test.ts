import { sizeOf } from '@gatehouse/tools/testing/size-of'
import { expect, test } from 'vitest'

import type { CallerFormatName } from '#formats/format-name.ts'
import type { UpstreamFormats } from '#formats/format.ts'
import { upstreamFormats } from '#formats/formats.ts'
import type { FrameTexts } from '#formats/texts/frame-texts.ts'
import {
  blockedBy,
  type Guarded,
  guardPlain,
  guardStreamed,
} from '#inference/enforcement/testing/guard-written.ts'
import { createAnswer, joinSaid, type Said } from '#inference/enforcement/testing/random-answer.ts'
import { createRuleSet, literalsOf } from '#inference/enforcement/testing/random-rule-set.ts'
import { readPlainViews, readStreamedViews } from '#inference/enforcement/testing/read-views.ts'
import { countClearedFrames, writeAnswer } from '#inference/enforcement/testing/write-answer.ts'
import type { WrittenAnswer } from '#inference/enforcement/testing/written-frame.ts'
import {
  enforceWhole,
  type TestRules,
  type WholeView,
} from '#policies/guard/testing/enforce-whole.ts'
import {
  createChoices,
  createEscapedText,
  type Random,
} from '#policies/guard/testing/random-case.ts'
import { answerFacts } from '#policies/guard/testing/rule-set-of.ts'
import type { AnswerRules } from '#policies/rules/answer-rules.ts'
import type { RuleSet } from '#policies/rules/rule-set.ts'

// An answer gets the verdict that its rules give to all that it says, in whatever format, frames and pieces it comes.

const cases = sizeOf({ usual: 20_000, long: 400_000, variable: 'VERDICT_CASES' })
const seed = Number(process.env['VERDICT_SEED'] ?? Date.now() % 2 ** 31)
const formatNames = ['messages', 'responses', 'chat_completions'] as const
/** Compiling takes longer than judging: so many cases after each other have the same rules. */
const casesPerSet = 25

type Case = {
  format: CallerFormatName
  written: WrittenAnswer
  /** What the caller has written of the answer. */
  prefill: string
  set: RuleSet
  rules: AnswerRules
}

let lastSet: { number: number; set: RuleSet } | undefined

function ruleSetFor(caseNumber: number): RuleSet {
  const number = Math.floor(caseNumber / casesPerSet)
  if (lastSet?.number !== number) lastSet = { number, set: createRuleSet(createChoices(number)) }
  return lastSet.set
}

function createCase(caseNumber: number, random: Random): Case {
  const format = random.pick(formatNames)
  const written = writeAnswer(format, createAnswer(random, createEscapedText), random)
  const prefill = random.isOneIn(3) ? createEscapedText(random) : ''
  const set = ruleSetFor(caseNumber)
  return { format, written, prefill, set, rules: set.openAnswer(answerFacts) }
}

/** What the rules say of all texts, without a guard and without a format. */
function judgeWhole({ set, rules }: Case, says: readonly Said[], views: readonly WholeView[]) {
  const wholes = views.map(({ text }) => text)
  const evaluate = (parts: readonly string[]) =>
    set.evaluate(answerFacts, [{ parts, wholes, isDecoded: true }])
  const whole: TestRules = {
    rules,
    literals: literalsOf(set),
    evaluateAtEnd: evaluate,
  }
  const { rule, isError, cleared } = enforceWhole(whole, says, views)
  const outcomes = evaluate(textsOf(says)).filter(({ isMatch }) => isMatch)
  const isOf = (mode: string) => (outcome: { index: number }) =>
    set.rules[outcome.index]?.mode === mode
  return {
    end: rule === null ? null : blockedBy(set.rules[rule]?.policyId, isError),
    isBlocked: outcomes.some(isOf('enforcing')),
    monitored: outcomes
      .filter(isOf('monitoring'))
      .map(({ index, score }) => `${set.rules[index]?.policyId} ${score}`),
    cleared,
  }
}

function textsOf(says: readonly Said[]): string[] {
  const texts = new Map<string, string>()
  for (const { channel, text } of says) texts.set(channel, (texts.get(channel) ?? '') + text)
  return [...texts.values()]
}

/** What is wrong with what left of a stream, or null. */
function findLeak(
  { written }: Case,
  streamed: Guarded,
  cleared: ReadonlyMap<string, number>,
): string | null {
  const sent = written.frames.slice(0, streamed.frames).map(({ bytes }) => bytes)
  if (streamed.bytes !== sent.join('')) return 'other bytes have left'
  const mayLeave = countClearedFrames(written, cleared)
  return streamed.frames === mayLeave ? null : `${streamed.frames} frames and not ${mayLeave}`
}

type Change = { rules?: (rules: AnswerRules) => AnswerRules; formats?: UpstreamFormats }

/** What is wrong in one case, or null. */
async function findDifference(made: Case, random: Random, change: Change) {
  const { format, written, prefill, set } = made
  const { formats = upstreamFormats } = change
  const judges = { set, rules: change.rules?.(made.rules) ?? made.rules, formats, prefill }
  const says = joinSaid(written.frames.flatMap((frame) => frame.says))
  const views = {
    streamed: readStreamedViews(format, written, prefill),
    plain: readPlainViews(format, written, prefill),
  }
  const expected = {
    streamed: judgeWhole(made, says, views.streamed),
    plain: judgeWhole(made, written.bodySays, views.plain),
  }
  const streamed = await guardStreamed(format, written, judges, random)
  const plain = await guardPlain(format, written, judges)
  // Texts that come in turns are joined as they come, which is not how a plain answer has them.
  const isSameOrder = JSON.stringify(says) === JSON.stringify(joinSaid(written.bodySays))
  // A block of an unknown kind stands between texts in a stream and beside them in a plain answer: what is read across it has other
  // places, so that another of several matching rules may come first.
  const isSameReading =
    isSameOrder && JSON.stringify(views.streamed) === JSON.stringify(views.plain)
  const { isBlocked } = expected.streamed
  const isRight =
    streamed.end === expected.streamed.end &&
    plain.end === expected.plain.end &&
    (streamed.end !== null) === isBlocked &&
    (plain.end !== null) === expected.plain.isBlocked &&
    (!isSameOrder || (streamed.end === null) === (plain.end === null)) &&
    (!isSameReading || streamed.end === plain.end) &&
    // Where nothing is said, there is nothing to hold back.
    plain.frames === (expected.plain.isBlocked && says.length > 0 ? 0 : 1) &&
    // A stream that is blocked is not read to its end.
    (isBlocked || sameNames(streamed.monitored, expected.streamed.monitored)) &&
    sameNames(plain.monitored, expected.plain.monitored)
  const leak = findLeak(made, streamed, expected.streamed.cleared)
  const rules = set.rules.map(({ mode, policyName }) => `${mode} ${policyName}`)
  return {
    isBlocked,
    difference: isRight && !leak ? null : { leak, streamed, plain, expected, rules, says },
  }
}

const sameNames = (one: readonly string[], other: readonly string[]) =>
  JSON.stringify(one) === JSON.stringify(other)

/** Stops at the first difference. */
async function compare(count: number, change: Change = {}) {
  let blocked = 0
  for (let number = 0; number < count; number++) {
    const random = createChoices(seed + number)
    const made = createCase(seed + number, random)
    const { isBlocked, difference } = await findDifference(made, random, change)
    if (difference) {
      // What is printed of a failure is the difference alone.
      return { blocked, difference: { seed: seed + number, format: made.format, ...difference } }
    }
    if (isBlocked) blocked++
  }
  return { blocked, difference: null }
}

/** Ten times what a busy machine needs. */
const patience = { timeout: 60_000 + cases * 50 }

// VERDICT_CASES sets the number of cases, VERDICT_SEED repeats a run.
test('streamed, plain and in theory, every answer has the same verdict', patience, async () => {
  const result = await compare(cases)
  console.log(`verdicts: ${cases} answers from seed ${seed}, ${result.blocked} of them blocked`)
  expect(result).toMatchObject({ difference: null })
  expect(result.blocked).toBeGreaterThan(cases / 8)
  expect(result.blocked).toBeLessThan(cases * 0.8)
})

test('a hold-back that is one character smaller is found out', patience, async () => {
  const rules = (all: AnswerRules) => ({ ...all, patternHold: Math.max(0, all.patternHold - 1) })
  const result = await compare(Math.max(cases, 20_000), { rules })
  expect(result.difference).not.toBeNull()
})

const kindsOfChannels = {
  prose: /^\d+\/text|content(?!.*#)/,
  reasoning: /thinking|reasoning|summary/,
  refusals: /refusal|^other/,
  arguments: /#/,
  'names and what is unknown': /^other/,
}

test.each(Object.entries(kindsOfChannels))(
  'an engine that overlooks %s is found out',
  patience,
  async (_, kind) => {
    const without = (found: FrameTexts): FrameTexts => ({
      ...found,
      texts: found.texts.filter(({ channel }) => !kind.test(channel)),
    })
    const formats: UpstreamFormats = new Map(
      [...upstreamFormats].map(([name, format]) => [
        name,
        {
          ...format,
          createTextReader(before) {
            const reader = format.createTextReader(before)
            return {
              read: (frame) => without(reader.read(frame)),
              readPlain: (body) => without(reader.readPlain(body)),
            }
          },
        },
      ]),
    )
    const result = await compare(2000, { formats })
    expect(result.difference).not.toBeNull()
  },
)
