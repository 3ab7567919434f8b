import type { QuestionsOf } from '#limits/limit-questions.ts'
import { NotAsked } from '#moderation/scorer.ts'
import type { RuleSet, SetRule } from '#policies/rules/rule-set.ts'

import type { JudgedHistory } from './history/judge-history.ts'
import { requireAllowed, requireUnrefused } from './judge-by-configuration.ts'
import { judgeByScores, judgePlainly, type Judging } from './judge-request.ts'
import type { ModeratedCall } from './moderate-call.ts'
import type { CallJudge } from './verdicts/ask-judge.ts'
import type { JudgedCall } from './verdicts/judgement.ts'
import { noteUnjudged } from './verdicts/note-matches.ts'

type Asking = {
  call: JudgedCall
  judging: Judging
  moderated: ModeratedCall
  callJudge: CallJudge | null
  /** Null where there are no earlier answers. */
  history: JudgedHistory | null
  /** What the organization has others asked. */
  questions: QuestionsOf
  /** The rules that are applied: those of the request, and those of its answer or of earlier ones. */
  sets: readonly RuleSet[]
}

/** Asks scorers and the judge about a request; throws where it may not be sent. */
export async function judgeRemotely(asking: Asking) {
  const { judging, questions, sets, history } = asking
  // Others may be asked about the answer, which then is not ended for it.
  await questions.scorer.check()
  if (sets.some(({ needsJudge }) => needsJudge)) await questions.judge.check()
  await judgeTexts(asking)
  await history?.afterHold(judging.texts.history)
  requireAllowed(judging)
}

async function judgeTexts({ judging, moderated, callJudge }: Asking) {
  const scores = await moderated.checkRemotely(judging.texts)
  requireUnrefused(judging)
  await judgeByScores(judging, scores)
  if (callJudge) await judgePlainly(judging, scores, callJudge)
}

/**
 * The same for a count of tokens, which asks no scorer and no judge: it costs nothing, so that it could be used to keep scorers and the
 * judge busy. What is known of its texts decides; the findings and the answer say who would have to be asked.
 */
export async function judgeByKnown(asking: Asking) {
  const { judging, history } = asking
  const { judgement, texts } = judging
  await unlessUnasked(asking, () => judgeTexts(asking))
  if (history) await unlessUnasked(asking, () => history.afterHold(texts.history))
  requireAllowed(judging)
  const watched = judgement.watched.splice(0)
  noteUnjudged(
    judgement,
    watched.flatMap(({ rules }) => rules),
  )
  const unjudged = (['scorer', 'judge'] as const).filter((each) => judgement.unjudged.has(each))
  if (unjudged.length === 0) return
  const { configured } = judgement
  const mode = configured?.isSampled ? `; mode=${configured.arm}` : ''
  asking.call.addHeaders({ 'x-policy-decision': `allow${mode}; unjudged=${unjudged.join()}` })
}

/** Notes who was not asked. Without scores it is unknown whether the judge would have been asked. */
async function unlessUnasked({ judging, sets }: Asking, judge: () => Promise<void>) {
  const { unjudged } = judging.judgement
  try {
    await judge()
  } catch (error) {
    if (!(error instanceof NotAsked)) throw error
    unjudged.add(error.whom)
    if (sets.some(({ rules }) => rules.some(needsVerdict))) unjudged.add('judge')
  }
}

const needsVerdict = ({ mode, rule }: SetRule) => mode === 'enforcing' && rule.needs.judge
