import { sizeOf } from '@gatehouse/tools/testing/size-of'
import { expect, test } from 'vitest'

import type { Json } from '#formats/answer.ts'
import type { CallerFormatName } from '#formats/format-name.ts'
import { callerFormats } from '#formats/formats.ts'
import { listOf } from '#formats/json-values.ts'
import { readRequestTexts } from '#formats/texts/request-texts.ts'
import { createFindings } from '#inference/enforcement/findings.ts'
import { guardPlain } from '#inference/enforcement/testing/guard-written.ts'
import { type Block, createAnswer } from '#inference/enforcement/testing/random-answer.ts'
import { createRuleSet } from '#inference/enforcement/testing/random-rule-set.ts'
import { writeAnswer } from '#inference/enforcement/testing/write-answer.ts'
import type { WrittenAnswer } from '#inference/enforcement/testing/written-frame.ts'
import { finish } from '#platform/steps/steps.ts'
import { createChoices, createText, type Random } from '#policies/guard/testing/random-case.ts'
import { answerFacts, patternEngine, someAsker } from '#policies/guard/testing/rule-set-of.ts'
import { RuleSet } from '#policies/rules/rule-set.ts'

import { checkHistory } from './check-history.ts'
import type { ModeratedHistory } from './moderate-history.ts'

// An answer that a caller sends back gets the verdict that it got, or would have got, when a model gave it.
// HISTORY_ANSWERS sets how many answers are compared, HISTORY_SEED repeats a run.

const count = sizeOf({ usual: 20_000, long: 200_000, variable: 'HISTORY_ANSWERS' })
const seed = Number(process.env['HISTORY_SEED'] ?? Date.now() % 2 ** 31)
const longest = 50
const formatNames = ['messages', 'responses', 'chat_completions'] as const

/** The rules that earlier answers are judged by: enforcing ones that say nothing about sizes or empty answers. */
function createAppliedRules(random: Random): RuleSet {
  for (;;) {
    const { rules } = createRuleSet(random)
    const empty = new RuleSet(rules, patternEngine).evaluate(answerFacts, [])
    const isTrivial = new Set(empty.filter(({ isMatch }) => isMatch).map(({ index }) => index))
    const applied = rules.filter(
      ({ rule, mode }, index) => mode === 'enforcing' && !rule.asksSize && !isTrivial.has(index),
    )
    if (applied.length > 0) return new RuleSet(applied, patternEngine)
  }
}

/**
 * One text or one call that says something. Where several texts meet, or escapes end early, a request is read in more ways than
 * an answer; blocks of other kinds are judged like the rest of a request.
 */
function createSentAnswer(format: CallerFormatName, random: Random): WrittenAnswer {
  for (;;) {
    const block = createAnswer(random, createText).find(isSent)
    if (!block) continue
    const answer = writeAnswer(format, [block], random)
    const isRunByProvider = JSON.stringify(answer.body).includes('"server_tool_use"')
    if (!isRunByProvider) return answer
  }
}

const isSent = (block: Block) =>
  block.kind === 'call' || (block.kind === 'text' && block.text !== '')

/** What a caller makes of an answer in its next request. */
const sendBack: Record<CallerFormatName, (answer: Json) => readonly unknown[]> = {
  messages: ({ content }) => [{ role: 'assistant', content }],
  responses: ({ output }) => listOf(output),
  chat_completions: ({ choices }) => listOf(choices).map((choice) => (choice as Json)['message']),
}

function requestOf(format: CallerFormatName, answers: readonly WrittenAnswer[]): Json {
  const question = { role: 'user', content: 'A question.' }
  const said = answers.flatMap(({ body }) => [question, ...sendBack[format](body)])
  return { model: 'm', [format === 'responses' ? 'input' : 'messages']: [...said, question] }
}

const unmoderated: ModeratedHistory = {
  checkLocally: () => Promise.resolve(null),
  checkRemotely: () => Promise.resolve(null),
  scoresOf: () => Promise.resolve(new Map()),
}

/** Which answer a request is refused for, or -1. */
async function judgeRequest(format: CallerFormatName, body: Json, set: RuleSet): Promise<number> {
  const { history } = finish(readRequestTexts(callerFormats[format].readTurn(body)))
  const findings = createFindings()
  const judged = checkHistory({
    mode: 'answer',
    findings,
    answers: history,
    answered: set,
    asked: new RuleSet([], patternEngine),
    isRestored: false,
    facts: { ...answerFacts, direction: 'request' },
    body,
    moderated: unmoderated,
    callJudge: null,
    asker: someAsker,
  })
  if (!(await judged.beforeHold())) return -1
  const [found] = findings.foundIn
  return history.findIndex(({ message }) => message === found?.message)
}

async function judgeAnswers(
  format: CallerFormatName,
  answers: readonly WrittenAnswer[],
  set: RuleSet,
): Promise<number> {
  const rules = set.openAnswer(answerFacts)
  for (const [number, answer] of answers.entries()) {
    const { end } = await guardPlain(format, answer, { set, rules })
    if (end !== null) return number
  }
  return -1
}

test(
  `${count} answers have the same verdict when they are sent back (seed ${seed})`,
  async () => {
    let [compared, refused] = [0, 0]
    for (let number = 0; compared < count; number++) {
      const random = createChoices(seed + number)
      const format = random.pick(formatNames)
      const answers = Array.from({ length: 1 + random.below(longest) }, () =>
        createSentAnswer(format, random),
      )
      const set = createAppliedRules(random)
      const body = requestOf(format, answers)
      const asAnswers = await judgeAnswers(format, answers, set)
      const asHistory = await judgeRequest(format, body, set)
      const verdicts = { seed: seed + number, format, asAnswers, asHistory }
      const said = [asAnswers, asHistory].map((index) => answers[index]?.body)
      const rules = set.rules.map(({ policyName }) => policyName)
      if (asHistory !== asAnswers) expect.fail(JSON.stringify({ ...verdicts, rules, said }))
      compared += answers.length
      if (asAnswers >= 0) refused++
    }
    expect(refused).toBeGreaterThan(count / 500)
  },
  60_000 + count * 20,
)
