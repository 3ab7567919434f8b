import type { RequestTexts } from '#formats/texts/request-texts.ts'
import type { Findings, CheckedCall } from '#inference/enforcement/findings.ts'
import {
  type ModeratedHistory,
  moderateHistory,
} from '#inference/enforcement/history/moderate-history.ts'
import { locate } from '#inference/enforcement/locate-matches.ts'
import {
  moderationMissing,
  partUnscored,
  partUnscoredByConfiguration,
  requestModerated,
  requestUnscorable,
  requestUnscored,
} from '#inference/enforcement/refusals.ts'
import type { QuestionsOf } from '#limits/limit-questions.ts'
import { alwaysBlocked, categories, type Category } from '#moderation/categories.ts'
import type { Moderation } from '#moderation/create-scorers.ts'
import { charactersMax, type LocalScorer } from '#moderation/local/local-scorer.ts'
import {
  blockingCategories,
  type CallModeration,
  type CategoryVerdict,
  findModerationGap,
  openModeration,
} from '#moderation/moderate.ts'
import { countedOnly, type Segment } from '#moderation/scorer.ts'
import type { ApiError } from '#platform/api-error.ts'
import type { Metrics } from '#platform/metrics.ts'
import type { Asker } from '#platform/steps/steps.ts'
import type { RuleSet } from '#policies/rules/rule-set.ts'
import type { ScoreMap } from '#policies/rules/score.ts'
import { type Passage, wholesOf } from '#text/passage.ts'

import { type AskedAnswer, scoreAnswer, type ScoredAnswer } from './score-answer.ts'

export type ModerationDeps = {
  moderation: Moderation
  local: LocalScorer
  metrics: Pick<Metrics, 'answerWindows'>
}

/** The moderation of one call. What it finds goes to the findings of the call. */
export type ModeratedCall = {
  /** The categories that end a call or an answer. */
  readonly blocking: readonly Category[]
  /** Scores the request in this process; returns why it is refused. */
  checkLocally(): Promise<ApiError | null>
  /** Asks the configured scorers; returns why the request is refused. */
  checkRemotely(sent: RequestTexts): Promise<ApiError | null>
  /** The scores of the request that rules read; null until the scorers have answered. */
  readonly scores: ScoreMap | null
  /** Opens the moderation of earlier answers by the rules for answers. `isSkipped`: only the always-blocked categories count. */
  openHistory(set: RuleSet, isSkipped: boolean): ModeratedHistory
  /** Scores the answer for these rules. */
  scoreAnswer(set: RuleSet, answer: AskedAnswer): ScoredAnswer
}

type Moderated = {
  call: Pick<CheckedCall, 'cancellation' | 'principal' | 'target'>
  asker: Asker
  /** Counts the questions to scorers. */
  questions: Pick<QuestionsOf, 'scorer'>
  /** The rules for the request. */
  set: RuleSet
  texts: RequestTexts
  /** The categories that the caller flags. */
  flagged: readonly Category[]
  findings: Findings
}

/** Throws if there is more text than moderation takes, with any scorers. All further work on the texts would be wasted. */
export function refuseTooLong({ text, history }: RequestTexts) {
  if (lengthOf(text) > charactersMax) throw requestUnscorable()
  if (lengthOf(history.flatMap(({ said }) => said)) > charactersMax) throw requestUnscorable()
}

/** The length of the texts as they were sent. Their other readings could only add to it. */
function lengthOf(passages: readonly Passage[]): number {
  let length = 0
  for (const { parts } of passages) for (const part of parts) length += part.length
  return length
}

/** Opens the moderation of a call; throws if the operator has configured nothing that covers the always-blocked categories. */
export function moderateCall(deps: ModerationDeps, moderated: Moderated): ModeratedCall {
  const { call, asker, set, texts, flagged, findings } = moderated
  const { moderation } = deps
  if (findModerationGap(moderation) !== null) throw moderationMissing()
  const { configured } = findings
  const byConfiguration = configured?.flagged ?? []
  // These categories refuse the call by themselves. The configuration decides about all others.
  const refused = blockingCategories(flagged)
  const blocking = configured?.isEnforced
    ? blockingCategories([...flagged, ...byConfiguration])
    : refused
  // Categories that are not enforced are only recorded: no call fails because of them.
  const watched = byConfiguration.filter((category) => !blocking.includes(category))
  const open = (read: ReadonlySet<Category>, { isSkipped = false, isAnswer = false } = {}) => {
    const wanted = isSkipped ? { blocking: alwaysBlocked } : { blocking, watched }
    const asking = askingOf(moderated, isAnswer)
    return openModeration({ moderation, local: deps.local, ...wanted, read, ...asking })
  }
  const checks = open(readBy(set))
  let localScores: ScoreMap = new Map()
  let scores: ScoreMap | null = null
  const segments = toSegments(texts)

  function decide(verdict: CategoryVerdict): ApiError | null {
    note(findings, verdict)
    const found = verdict.reached.find((category) => refused.includes(category))
    if (found) return requestModerated(findings, found)
    if (verdict.isUnscorable) return requestUnscorable()
    if (verdict.isUnavailable) return requestUnscored()
    const hasUnscored = texts.hasUnreadable || verdict.hasUnscoredImage
    return hasUnscored ? decideUnscored(moderation, configured) : null
  }

  return {
    blocking,
    get scores() {
      return scores
    },
    async checkLocally() {
      if (texts.hasUnreadable) findings.hasUnscoredParts = true
      const verdict = await checks.checkLocally(segments, call.cancellation.signal)
      if (verdict.reached.length > 0) await locateReached(texts, checks.checkLocally, moderated)
      localScores = verdict.scores
      return decide(verdict)
    },
    async checkRemotely(sent) {
      const asked = sent === texts ? segments : toSegments(sent)
      const verdict = await checkAll(checks, asked, call.cancellation.signal)
      if (verdict.reached.length > 0) await locateReached(sent, checks.checkRemotely, moderated)
      const refusal = decide(verdict)
      if (!refusal) scores = new Map([...localScores, ...verdict.scores])
      return refusal
    },
    openHistory(answerSet, isSkipped) {
      const checks = open(readBy(answerSet), { isSkipped })
      return moderateHistory({ checks, refused, findings, asker })
    },
    scoreAnswer(answerSet, answer) {
      const read = readBy(answerSet)
      const checks = open(read, { isAnswer: true })
      return scoreAnswer({ ...answer, blocking, watched, read, checks, metrics: deps.metrics })
    },
  }
}

/** So few texts are looked up in one go; more of them, in steps. */
const knownMost = 8

/** Where all scores are known, nothing is awaited but this. */
async function checkAll(checks: CallModeration, asked: readonly Segment[], signal: AbortSignal) {
  const known = asked.length <= knownMost ? checks.findKnown(asked) : undefined
  return known ?? checks.checkRemotely(asked, signal)
}

/** A count of tokens asks no remote scorer or judge, and no answer is ended because of the questions about it. */
const askingOf = ({ call, questions: { scorer } }: Moderated, isAnswer: boolean) => ({
  organizationId: call.principal.organizationId,
  isKnownOnly: call.target === 'count_tokens',
  questions: isAnswer ? countedOnly(scorer) : scorer,
})

/** An organization can be stricter than the operator, but not less strict. */
function decideUnscored(
  { settings }: Moderation,
  configured: Findings['configured'],
): ApiError | null {
  if (settings.unscoredParts === 'refuse') return partUnscored(configured)
  const { unscored_parts } = configured?.gateway.config.rules ?? {}
  return configured?.isProtected && unscored_parts === 'refuse'
    ? partUnscoredByConfiguration(configured)
    : null
}

/** The scores are in the cache by now, so scorers are not asked again. */
const locateReached = (
  { text }: RequestTexts,
  check: CallModeration['checkLocally'],
  { call, findings }: Moderated,
) =>
  locate(findings, text, async (said) => {
    const { reached } = await check(
      toSegments({ text: [said], images: [] }),
      call.cancellation.signal,
    )
    return reached.length > 0
  })

const readBy = (set: RuleSet) => new Set(categories.filter((each) => set.categories.has(each)))

/** Each text is scored on its own, so that the scores of texts from an earlier turn are already known. */
const toSegments = ({ text, images }: Pick<RequestTexts, 'text' | 'images'>): Segment[] => [
  ...text.flatMap(wholesOf).map((each) => ({ role: 'user' as const, text: each })),
  ...images.map((imageUrl) => ({ role: 'user' as const, text: '', imageUrl })),
]

function note(findings: Findings, { reached, isDegraded, hasUnscoredImage }: CategoryVerdict) {
  findings.configured?.noteCategories(reached)
  if (isDegraded) findings.isDegraded = true
  if (hasUnscoredImage) findings.hasUnscoredParts = true
}
