import { effectiveAction } from '@gatehouse/contract/policy-gateway/config'

import type { Piece } from '#formats/answer.ts'
import type { UpstreamFormats } from '#formats/format.ts'
import { readRequestTexts, type RequestTexts } from '#formats/texts/request-texts.ts'
import { shareOf } from '#http/principal.ts'
import { type ConfiguredCall, openConfigured } from '#inference/gateway/configured-call.ts'
import type { CallRedaction } from '#inference/redacting/call-redaction.ts'
import type { Replace } from '#inference/replacing/replacement.ts'
import { categories, type Category } from '#moderation/categories.ts'
import type { CurrentModeration } from '#moderation/create-moderation.ts'
import type { Clock } from '#platform/clock.ts'
import { createLogThrottle } from '#platform/log-throttle.ts'
import type { Log } from '#platform/log.ts'
import type { CallFacts } from '#policies/rules/facts.ts'
import type { RuleSet, SetRule } from '#policies/rules/rule-set.ts'
import { type ProjectRules, ruleSetsOf } from '#policy-gateway/rule-sets.ts'
import type { PatternEngine } from '#text/pattern-engine.ts'
import { type Asker, runInTurns } from '#text/steps.ts'

import { addCategories, addTerms } from './add-categories.ts'
import { judgeErrorTexts } from './errors/judge-error-texts.ts'
import { guardByRules, type LogProblem } from './guard-by-rules.ts'
import { judgeHistory } from './history/judge-history.ts'
import { judgeAnswer, unjudgedAnswer } from './judge-answer.ts'
import {
  judgeByTerms,
  refuseByConfiguration,
  requireAllowed,
  requireUnrefused,
} from './judge-by-configuration.ts'
import { judgeByScores, judgeExactly, judgePlainly, type Judging } from './judge-request.ts'
import { type ModeratedCall, moderateCall, type ModerationDeps } from './moderate-call.ts'
import { type EstimateTokens, openRedaction, redactCall } from './redact-call.ts'
import { replaceBlockedCall } from './replace-blocked-call.ts'
import type { CallJudge } from './verdicts/ask-judge.ts'
import {
  type Findings,
  type JudgedCall,
  type JudgedRequest,
  type Judgement,
  type JudgeRequest,
} from './verdicts/judgement.ts'
import { cannotEnforce } from './verdicts/policy-refusal.ts'

type Deps = Omit<ModerationDeps, 'moderation'> & {
  moderation: () => CurrentModeration
  engine: PatternEngine
  formats: UpstreamFormats
  replace: Replace
  steadyNow: Clock
  log: Log
  estimate: EstimateTokens
}
/** What the guards of all answers share. */
type GuardDeps = Pick<Deps, 'formats' | 'steadyNow' | 'replace'> & { logProblem: LogProblem }

/** Judges calls by the rules of the snapshot that they are pinned to, and by moderation. */
export function createJudge(deps: Deps): JudgeRequest {
  const { formats, steadyNow, replace, log, estimate } = deps
  const logProblem = createLogThrottle({ log, now: steadyNow })
  return async (call, request, findings) => {
    const sets = ruleSetsOf(call.policies.snapshot, deps.engine)
    const { projectId } = call.principal
    const building = sets.for(projectId, 'request')
    const asked = building instanceof Promise ? await building : building
    const texts = readRequestTexts(request.turn)
    // Whoever only counts tokens gets no answer of a model, but may send earlier ones.
    const isAnswered = call.target !== 'count_tokens'
    const answered =
      isAnswered || texts.history.length > 0 ? await sets.for(projectId, 'response') : null
    const [broken] = [...asked.unenforceable, ...(answered?.unenforceable ?? [])]
    if (broken) throw cannotEnforce(broken)
    // The same until the call ends.
    const moderation = deps.moderation()
    requireJudge(moderation, [asked, answered])
    findings.configured = openConfigured(call)
    const judgement = allow(request, findings)
    noteUnasked(moderation, [asked, answered], findings)
    const facts = toFacts(call, request, texts)
    const asker = askerOf(call)
    const flagged = readCategories(request.body['flagged_categories'])
    const { set } = asked
    const hasRules = set.rules.length > 0 || (answered?.set.rules.length ?? 0) > 0
    if (hasRules) findings.features = { scores: [], categories: [] }
    const moderated = moderateCall(
      { moderation, local: deps.local },
      { call, set, texts, flagged, findings: judgement },
    )
    const judging = { judgement, set, texts, facts, open: set.openTexts(facts, texts.text), asker }
    await judgeExactly(judging)
    await judgeByTerms(judging)
    judgement.refusal ??= await moderated.checkLocally()
    judgement.refusal ??= refuseByConfiguration(judging)
    const callJudge = openCallJudge(moderation, call, judgement)
    const history =
      answered &&
      openHistory({ judging, answered: answered.set, facts, moderated, callJudge, request })
    if (history) judgement.refusal ??= await history.beforeHold()
    const redaction = judgement.refusal ? null : openRedaction(judgement)
    // What leaves this process is redacted; what is judged in it is not, so that rules can count what was said.
    if (redaction) judging.texts = await redactCall(redaction, { ...judging, call, estimate })
    judgement.settle = async () => {
      const scores = await moderated.checkRemotely(judging.texts)
      requireUnrefused(judging)
      await judgeByScores(judging, scores)
      if (callJudge) await judgePlainly(judging, scores, callJudge)
      await history?.afterHold(judging.texts.history)
      requireAllowed(judging)
    }
    const hold =
      answered && isAnswered
        ? await guardAnswer(
            { formats, steadyNow, replace, logProblem },
            { ...judging, set: answered.set, call, facts, moderated, callJudge, redaction },
          )
        : 'none'
    call.addHeaders({ 'x-policy-holdback': String(hold) })
    return judgement
  }
}

type WithHistory = Pick<Guarded, 'facts' | 'moderated' | 'callJudge'> & {
  judging: Judging
  answered: RuleSet
  request: JudgedRequest
}

/** Earlier answers, by the rules that answers are judged by. */
function openHistory({ judging, answered, facts, moderated, callJudge, request }: WithHistory) {
  const { judgement, set, texts, asker } = judging
  const mode = judgement.configured?.historyMode ?? 'answer'
  return judgeHistory({
    mode,
    findings: judgement,
    answers: texts.history,
    answered,
    asked: set,
    isRestored: judgement.configured?.isEnforced === true && restores(judgement.configured),
    facts,
    body: request.body,
    moderated: moderated.openHistory(answered, mode === 'skip'),
    callJudge,
    asker,
  })
}

const restores = ({ gateway }: ConfiguredCall) => gateway.config.rules.redact_restore === true

type Guarded = {
  call: JudgedCall
  judgement: Judgement<JudgedRequest>
  set: RuleSet
  facts: CallFacts
  /** Of the request, as it is sent. */
  texts: RequestTexts
  moderated: ModeratedCall
  callJudge: CallJudge | null
  asker: Asker
  redaction: CallRedaction | null
}

/** Sets the guard of the answer; returns how much it holds back. */
async function guardAnswer(
  { replace, ...deps }: GuardDeps,
  { call, judgement, set, moderated, callJudge, ...asked }: Guarded,
) {
  const facts = { ...asked.facts, direction: 'response' as const }
  const { blocking: categories } = moderated
  const { redaction, asker } = asked
  const hide = redaction && redaction.hide
  const own = await runInTurns(set.openAnswerInSteps(facts), asker)
  const rulesOf = ({ configured }: Findings) =>
    addTerms(
      addCategories(own, categories, set.rules.length),
      configured?.endingTerms ?? null,
      set.rules.length + categories.length,
    )
  const rules = rulesOf(judgement)
  const guard = (pieces: AsyncIterable<Piece>, findings: Findings, isApart = false) =>
    guardByRules(pieces, {
      ...deps,
      cancellation: call.cancellation,
      set,
      rules: isApart ? rulesOf(findings) : rules,
      facts,
      prefill: asked.texts.prefill,
      findings,
      owner: asker.owner,
      categories,
      scored: moderated.scoreAnswer(set, own.scores, hide, isApart ? findings : judgement),
      judged:
        callJudge && set.needsJudge
          ? judgeAnswer({ callJudge, set, rules: own, request: asked.texts, hide })
          : unjudgedAnswer,
    })
  if (mayReplace(judgement)) replaceBlockedCall(judgement, { replace, call, guard, hide, asker })
  else judgement.guard = (pieces) => guard(pieces, judgement)
  judgeErrorTexts(judgement, {
    guard: (pieces, findings) => guard(pieces, findings, true),
    redaction,
    asker,
  })
  if (!redaction) return rules.hold
  const { guard: guardOriginal } = judgement
  judgement.guard = (pieces) => redaction.redactAnswer(guardOriginal(pieces), asker)
  // What the guard has let go is held until it is final.
  return typeof rules.hold === 'number' ? rules.hold + redaction.hold : rules.hold
}

/** Whether the configuration of the organization wants other words instead of a refusal. */
function mayReplace({ configured }: Findings): boolean {
  const action = configured?.isEnforced && effectiveAction(configured.gateway.config)
  return action === 'rewrite' || action === 'summary'
}

/** A configuration may have lost its judge since a policy was published. */
function requireJudge({ judge }: CurrentModeration, rules: readonly (ProjectRules | null)[]) {
  if (judge) return
  const unjudged = rules.flatMap((each) => each?.set.rules ?? []).find(needsVerdict)
  if (unjudged) throw cannotEnforce(unjudged)
}

const needsVerdict = ({ mode, rule }: SetRule) => mode === 'enforcing' && rule.needs.judge

const isWatchedOnly = ({ mode, rule }: SetRule) => mode === 'monitoring' && rule.needs.judge

/** Monitoring rules that nobody can evaluate; without a judge, also those in plain language. */
function noteUnasked(
  { judge }: CurrentModeration,
  rules: readonly (ProjectRules | null)[],
  findings: Findings,
) {
  const unevaluated = rules.flatMap((each) => [
    ...(each?.unevaluated ?? []),
    ...(judge ? [] : (each?.set.rules ?? [])).filter(isWatchedOnly).map(({ policyId }) => policyId),
  ])
  findings.unevaluated.push(...new Set(unevaluated))
}

/** Null where no judge is configured; then no enforcing rule needs one. */
function openCallJudge(
  { judge, settings }: CurrentModeration,
  { policies }: JudgedCall,
  findings: Findings,
): CallJudge | null {
  if (!judge) return null
  return {
    judge,
    onError: settings.judge?.onError ?? 'refuse',
    organizationId: policies.snapshot.organizationId,
    onDegraded() {
      findings.isJudgeDegraded = true
    },
  }
}

function allow<Request extends JudgedRequest>(
  request: Request,
  findings: Findings,
): Judgement<Request> {
  return Object.assign(findings, {
    request,
    refusal: null,
    settle: () => Promise.resolve(),
    guard: (pieces: AsyncIterable<Piece>) => pieces,
  })
}

/** A caller that hangs up needs no verdict on its request. Few calls ask for the signal, and making one is not cheap. */
const askerOf = ({ principal, cancellation }: JudgedCall): Asker => ({
  owner: shareOf(principal),
  get signal() {
    return cancellation.signal
  },
})

function toFacts(call: JudgedCall, request: JudgedRequest, texts: RequestTexts): CallFacts {
  return {
    direction: 'request',
    model: request.model.id,
    projectId: call.principal.projectId ?? '',
    endpoint: call.target,
    role: texts.role,
    isStreamed: request.isStreamed,
    inputTokens: request.estimate.tokens,
    categories: readCategories(request.body['flagged_categories']),
    userText: texts.userText,
    lastMessage: texts.lastMessage,
    system: texts.system,
    tools: texts.tools,
    history: texts.history.flatMap(({ said }) => said),
  }
}

/** The body was checked, so there are no others. */
const readCategories = (value: unknown): readonly Category[] =>
  Array.isArray(value) ? categories.filter((each) => value.includes(each)) : []
