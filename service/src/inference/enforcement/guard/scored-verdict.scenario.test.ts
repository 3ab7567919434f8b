import { setImmediate } from 'node:timers/promises'
import { inspect } from 'node:util'

import { sizeOf } from '@gatehouse/tools/testing/size-of'
import { expect, test } from 'vitest'

import type { CallerFormatName } from '#formats/format-name.ts'
import type { ScoredAnswer } from '#inference/enforcement/moderation/score-answer.ts'
import { unjudgedAnswer } from '#inference/enforcement/plain-language/judge-answer.ts'
import {
  blockedBy,
  type Guarded,
  guardPlain,
  guardStreamed,
  type Judges,
} from '#inference/enforcement/testing/guard-written.ts'
import {
  type Block,
  createAnswer,
  joinSaid,
  type Said,
} from '#inference/enforcement/testing/random-answer.ts'
import { readPlainViews, readStreamedViews } from '#inference/enforcement/testing/read-views.ts'
import {
  createScoredSet,
  said,
  type ScoredSet,
} from '#inference/enforcement/testing/scored-rule-set.ts'
import {
  openScriptedModels,
  type ScriptedModels,
} from '#inference/enforcement/testing/scripted-models.ts'
import { inVirtualTime, sleep } from '#inference/enforcement/testing/virtual-time.ts'
import { countClearedFrames, writeAnswer } from '#inference/enforcement/testing/write-answer.ts'
import type { WrittenAnswer } from '#inference/enforcement/testing/written-frame.ts'
import { alwaysBlocked } from '#moderation/categories.ts'
import { enforceWhole, type WholeView } from '#policies/guard/testing/enforce-whole.ts'
import { createChoices, type Random } from '#policies/guard/testing/random-case.ts'
import { createScoredText } from '#policies/guard/testing/scored-case.ts'
import type { ScoreWindows } from '#policies/guard/window-queue.ts'
import { normalise } from '#text/normalise.ts'

// The same with scorers and judges, whose verdicts come late, in any order, or not at all.

const cases = sizeOf({ usual: 2000, long: 200_000, variable: 'SCORED_VERDICT_CASES' })
const seed = Number(process.env['VERDICT_SEED'] ?? Date.now() % 2 ** 31)
const formatNames = ['messages', 'responses', 'chat_completions'] as const
/** Compiling takes longer than judging: so many cases after each other have the same rules. */
const casesPerSet = 25
/** Several times what may wait for verdicts. */
const longWords = 8000
/** Texts that grow side by side wait for each other, and a guard holds less of them. */
const sideBySideMost = 4000

type Case = {
  format: CallerFormatName
  blocks: readonly Block[]
  written: WrittenAnswer
  scored: ScoredSet
  canFail: boolean
}

let lastSet: { number: number; scored: ScoredSet } | undefined

function scoredSetFor(caseNumber: number): ScoredSet {
  const number = Math.floor(caseNumber / casesPerSet)
  if (lastSet?.number !== number) {
    lastSet = { number, scored: createScoredSet(createChoices(number)) }
  }
  return lastSet.scored
}

/** One text that is long, or some short ones. */
function createBlocks(random: Random): Block[] {
  if (random.isOneIn(200)) {
    const text = createScoredText(random, { most: longWords, rarity: 6000, rare: said })
    return [{ kind: random.pick(['text', 'reasoning']), id: 'block0', text }]
  }
  const most = random.pick([10, 40, 100])
  for (;;) {
    const blocks = createAnswer(random, () =>
      createScoredText(random, { most, rarity: 50, rare: said }),
    )
    const lengths = blocks.map((block) => (block.kind === 'call' ? block.units : block.text).length)
    if (lengths.reduce((sum, length) => sum + length, 0) <= sideBySideMost) return blocks
  }
}

function createCase(caseNumber: number, random: Random): Case {
  const format = random.pick(formatNames)
  const blocks = createBlocks(random)
  const written = writeAnswer(format, blocks, random)
  return { format, blocks, written, scored: scoredSetFor(caseNumber), canFail: random.isOneIn(6) }
}

function judgeWhole({ set, whole }: ScoredSet, says: readonly Said[], views: readonly WholeView[]) {
  const evaluateAtEnd = (texts: readonly string[]) =>
    whole.evaluateAtEnd([...texts, ...views.map(({ text }) => text)])
  const { rule, isError, cleared } = enforceWhole({ ...whole, evaluateAtEnd }, says, views)
  if (rule === null) return { end: null, cleared }
  const category = alwaysBlocked[rule - set.rules.length]
  return { end: category ?? blockedBy(set.rules[rule]?.policyId, isError), cleared }
}

/** What is broken on purpose, to see that it is found out. */
type Change = (judges: Judges) => Judges

/** The rules as they judge one answer, each time with models of their own. */
function openJudges({ scored: { set, own }, canFail }: Case, random: Random, change: Change) {
  const models = openScriptedModels({ random, canFail }, { set, own })
  const { scored, judged } = models
  const gapMs = random.pick([0, 0, 16, 200])
  const judges = change({
    set,
    rules: own,
    categories: alwaysBlocked,
    scored,
    judged,
    pause: () => sleep(gapMs),
  })
  return { models, judges }
}

/** Finds out whether more of a text is held back than the rules declare, while no verdict is missing. */
function watchHold({ written, blocks, scored }: Case, models: ScriptedModels) {
  const { hold } = scored.whole.rules
  const isOneText = blocks.length === 1 && blocks[0]?.kind !== 'call'
  let [arrivedBytes, arrived, exceededAt] = [0, 0, Infinity]

  /** What arrived in whole frames and has not left. The first of them may have been cleared in part. */
  function heldLength(leftFrames: number): number {
    const [first = '', ...others] = written.frames
      .slice(leftFrames, arrived)
      .map(({ says }) => says.map(({ text }) => text).join(''))
    return normalise(first + others.join('')).text.length - first.length
  }
  return {
    /** What follows the last frame that left of an answer that was ended is dropped, not held back. */
    isExceeded: ({ end, frames }: Guarded) => exceededAt < (end === null ? Infinity : frames),
    async onPause(progress: { bytes: number; leftFrames: number }) {
      if (!isOneText || typeof hold !== 'number') return
      for (let next = written.frames[arrived]; next; next = written.frames[arrived]) {
        const bytes = arrivedBytes + Buffer.byteLength(next.bytes)
        if (bytes > progress.bytes) break
        arrivedBytes = bytes
        arrived++
      }
      const { questions } = models
      const isTooMuch = () =>
        !questions.isOpen && !questions.isGivenUp && heldLength(progress.leftFrames) > hold
      // On a busy machine the guard may not have had its turn yet.
      for (let turn = 0; turn < 50 && isTooMuch(); turn++) await setImmediate()
      if (isTooMuch()) exceededAt = Math.min(exceededAt, progress.leftFrames)
    },
  }
}

/** What is wrong with how an answer ended, or null. */
function findWrongEnd(guarded: Guarded, models: ScriptedModels, expected: string | null) {
  const { end } = guarded
  if (models.hasWaitedTooLong()) return 'a window has waited for too long'
  if (end === expected && !models.mayFail()) return null
  if (models.mayFail() && end === null) return 'a failure is passed over'
  // Of several rules that match in a window, a failure may hide the first.
  const isBlock = end !== 'unavailable' && expected !== null
  const isRight = models.mayFail() && (end === 'unavailable' || isBlock)
  return isRight ? null : `${end} and not ${expected}`
}

/** What is wrong in one case, or null. */
async function findDifference(made: Case, random: Random, change: Change) {
  const { format, written, scored } = made
  const says = joinSaid(written.frames.flatMap((frame) => frame.says))
  const views = {
    streamed: readStreamedViews(format, written),
    plain: readPlainViews(format, written),
  }
  const expected = {
    streamed: judgeWhole(scored, says, views.streamed),
    plain: judgeWhole(scored, written.bodySays, views.plain),
  }
  const one = openJudges(made, random, change)
  const watch = watchHold(made, one.models)
  const judges = { ...one.judges, onPause: watch.onPause }
  const streamed = await guardStreamed(format, written, judges, random)
  const other = openJudges(made, random, change)
  const plain = await guardPlain(format, written, other.judges)

  const mayLeave = countClearedFrames(written, expected.streamed.cleared)
  const sent = written.frames.slice(0, streamed.frames).map(({ bytes }) => bytes)
  const isCut = one.models.mayFail() || streamed.frames === mayLeave
  const monitoredIn = (readings: readonly WholeView[]) =>
    scored.matchedBy([...textsOf(says), ...readings.map(({ text }) => text)]).join()
  const problems = [
    findWrongEnd(streamed, one.models, expected.streamed.end),
    findWrongEnd(plain, other.models, expected.plain.end),
    streamed.bytes === sent.join('') ? null : 'other bytes have left',
    streamed.frames > mayLeave ? 'something has left from the cut on' : null,
    isCut ? null : 'something before the cut has not left',
    plain.frames === (plain.end === null || says.length === 0 ? 1 : 0) ? null : 'a part has left',
    watch.isExceeded(streamed) ? 'more is held back than declared' : null,
    ...[
      { ...streamed, expected: monitoredIn(views.streamed) },
      { ...plain, expected: monitoredIn(views.plain) },
    ].map(({ end, monitored, expected: matching }) =>
      end === null && monitored.join() !== matching ? 'other rules have matched' : null,
    ),
  ].filter((problem) => problem !== null)
  const rules = scored.set.rules.map(({ mode, policyName }) => `${mode} ${policyName}`)
  const difference = { problems, streamed, plain, expected, mayLeave, rules, says }
  return {
    difference: problems.length === 0 ? null : difference,
    ends: [streamed.end, plain.end],
  }
}

function textsOf(says: readonly Said[]): string[] {
  const texts = new Map<string, string>()
  for (const { channel, text } of says) texts.set(channel, (texts.get(channel) ?? '') + text)
  return [...texts.values()]
}

/** Stops at the first difference. */
function compare(count: number, change: Change = (judges) => judges) {
  const ends = { passed: 0, blocked: 0, unavailable: 0, long: 0 }
  return inVirtualTime(async () => {
    for (let number = seed; number < seed + count; number++) {
      const random = createChoices(number)
      const made = createCase(number, random)
      const found = await findDifference(made, random, change)
      if (found.difference) {
        return { difference: { seed: number, format: made.format, ...found.difference }, ends }
      }
      for (const end of found.ends) {
        ends[end === null ? 'passed' : end === 'unavailable' ? end : 'blocked']++
      }
      if (made.written.bodySays.some(({ text }) => text.length > 16_384)) ends.long++
    }
    return { difference: null, ends }
  })
}

/** Ten times what a busy machine needs. */
const patience = { timeout: 60_000 + cases * 60 }

// SCORED_VERDICT_CASES sets the number of cases, VERDICT_SEED repeats a run.
test('whenever models answer, the verdict is that on the whole answer', patience, async () => {
  const result = await compare(cases)
  if (result.difference) {
    // Texts are long, and the seed of a case brings them back.
    const { seed: number, format, problems, rules, expected } = result.difference
    expect.fail(inspect({ seed: number, format, problems, rules, expected }, { depth: 5 }))
  }
  const { passed, blocked, unavailable, long } = result.ends
  console.log(
    `scored verdicts: ${cases} answers from seed ${seed}, streamed and plain: ${passed} passed, ${blocked} blocked, ${unavailable} unavailable; ${long} long`,
  )
  for (const count of [passed, blocked, unavailable]) expect(count).toBeGreaterThan(cases / 10)
  expect(long).toBeGreaterThan(cases / 2000)
})

const changeScores = (
  { scored }: Judges,
  change: (scoreWindows: ScoreWindows) => ScoreWindows,
): ScoredAnswer => ({
  ...scored!,
  scorers: scored!.scorers.map((each) => ({ ...each, scoreWindows: change(each.scoreWindows) })),
})

const changes: Record<string, Change> = {
  'a judge that is not asked': (judges) => ({ ...judges, judged: unjudgedAnswer }),
  'a failure that counts as nothing found': (judges) => ({
    ...judges,
    scored: changeScores(
      judges,
      (scoreWindows) => (windows, signal) =>
        scoreWindows(windows, signal)
          .then((verdicts) => verdicts.map((each) => (Array.isArray(each) ? each : [])))
          .catch(() => windows.map(() => [])),
    ),
  }),
  'a window that nobody scores': (judges) => ({
    ...judges,
    scored: changeScores(judges, (scoreWindows) => async (windows, signal) => {
      const atoms = await scoreWindows(windows, signal)
      return atoms.map((each, number) => (windows[number]?.isLast ? [] : each))
    }),
  }),
}

test.each(Object.entries(changes))('%s is found out', patience, async (_, change) => {
  const result = await compare(Math.max(cases, 20_000), change)
  expect(result.difference).not.toBeNull()
})
