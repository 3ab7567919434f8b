import type { Piece } from '#formats/answer.ts'
import type { UpstreamFormats } from '#formats/format.ts'
import {
  decodeTextsInSteps,
  readTextsInSteps,
  type RequestTexts,
} from '#formats/texts/request-texts.ts'
import { shareOf } from '#http/principal.ts'
import { openConfigured } from '#inference/gateway/configured-call.ts'
import type { Replace } from '#inference/replacing/replacement.ts'
import type { QuestionsOf } from '#limits/limit-questions.ts'
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

import { judgeHistory } from './history/judge-history.ts'
import { judgeByTerms, refuseByConfiguration } from './judge-by-configuration.ts'
import { judgeByKnown, judgeRemotely } from './judge-remotely.ts'
import { judgeExactly, type Judging } from './judge-request.ts'
import { moderateCall, type ModerationDeps, refuseTooLong } from './moderate-call.ts'
import { type Guarded, openGuard } from './open-guard.ts'
import { type EstimateTokens, openRedaction, redactCall } from './redact-call.ts'
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
  openQuestions: OpenQuestions
}

type OpenQuestions = (caller: JudgedCall['principal']) => QuestionsOf

/** Judges calls by the rules of the snapshot that they are pinned to, and by moderation. */
export function createJudge(deps: Deps): JudgeRequest {
  const { formats, steadyNow, replace, log, estimate } = deps
  const logProblem = createLogThrottle({ log, now: steadyNow })
  return async (call, request, findings) => {
    const inForce = ruleSetsOf(call.policies.snapshot, deps.engine)
    const { projectId } = call.principal
    const building = inForce.for(projectId, 'request')
    const asked = building instanceof Promise ? await building : building
    const asker = askerOf(call)
    const texts = await readTexts(request, asker)
    // Whoever only counts tokens gets no answer of a model, but may send earlier ones.
    const isAnswered = call.target !== 'count_tokens'
    const answered =
      isAnswered || texts.history.length > 0 ? await inForce.for(projectId, 'response') : null
    const [broken] = [...asked.unenforceable, ...(answered?.unenforceable ?? [])]
    if (broken) throw cannotEnforce(broken)
    // The same until the call ends.
    const moderation = deps.moderation()
    requireJudge(moderation, [asked, answered])
    findings.configured = openConfigured(call)
    const judgement = allow(request, findings)
    noteUnasked(moderation, [asked, answered], findings)
    const facts = toFacts(call, request, texts)
    const flagged = readCategories(request.body['flagged_categories'])
    const { set } = asked
    const hasRules = set.rules.length > 0 || (answered?.set.rules.length ?? 0) > 0
    if (hasRules) findings.features = { scores: [], categories: [] }
    const questions = deps.openQuestions(call.principal)
    const moderated = moderateCall(
      { moderation, local: deps.local },
      { call, asker, set, texts, flagged, findings: judgement, questions },
    )
    const judging = { judgement, set, texts, facts, open: set.openTexts(facts, texts.text), asker }
    await judgeExactly(judging)
    await judgeByTerms(judging)
    judgement.refusal ??= await moderated.checkLocally()
    judgement.refusal ??= refuseByConfiguration(judging)
    const callJudge = openCallJudge(moderation, call, { findings: judgement, questions })
    const history =
      answered &&
      openHistory({ judging, answered: answered.set, facts, moderated, callJudge, request })
    if (history) judgement.refusal ??= await history.beforeHold()
    const redaction = judgement.refusal ? null : openRedaction(judgement)
    // What leaves this process is redacted; what is judged in it is not, so that rules can count what was said.
    if (redaction) judging.texts = await redactCall(redaction, { ...judging, call, estimate })
    const sets = [set, ...(answered ? [answered.set] : [])]
    const asking = { judging, moderated, callJudge, history, call, questions, sets }
    judgement.settle = () => (isAnswered ? judgeRemotely(asking) : judgeByKnown(asking))
    const hold =
      answered && isAnswered
        ? await openGuard(
            { formats, steadyNow, replace, logProblem },
            { ...judging, set: answered.set, call, moderated, callJudge, redaction, questions },
          )
        : 'none'
    call.addHeaders({ 'x-policy-holdback': String(hold) })
    return judgement
  }
}

/** What may be judged of a request; throws where it is too long for that. */
async function readTexts({ turn }: JudgedRequest, asker: Asker): Promise<RequestTexts> {
  const texts = await runInTurns(readTextsInSteps(turn), asker)
  refuseTooLong(texts)
  await runInTurns(decodeTextsInSteps(texts), asker)
  return texts
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
    isRestored: judgement.configured?.redaction?.restores === true,
    facts,
    body: request.body,
    moderated: moderated.openHistory(answered, mode === 'skip'),
    callJudge,
    asker,
  })
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
  { policies, target }: JudgedCall,
  { findings, questions }: { findings: Findings; questions: QuestionsOf },
): CallJudge | null {
  if (!judge) return null
  return {
    judge,
    onError: settings.judge?.onError ?? 'refuse',
    organizationId: policies.snapshot.organizationId,
    questions: questions.judge,
    isKnownOnly: target === 'count_tokens',
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
const askerOf = ({ principal, cancellation, onDecided }: JudgedCall): Asker => ({
  owner: shareOf(principal),
  // Searches in threads may take seconds, and the process has a few dozen turns for all organizations.
  onElsewhere: () => onDecided?.(),
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
