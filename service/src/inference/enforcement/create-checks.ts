import {
  decodeRequestTexts,
  readRequestTexts,
  type RequestTexts,
} from '#formats/texts/request-texts.ts'
import { shareOf } from '#http/principal.ts'
import { openConfigured } from '#inference/configured/configured-call.ts'
import type { QuestionsOf } from '#limits/limit-questions.ts'
import { categories, type Category } from '#moderation/categories.ts'
import type { CurrentModeration } from '#moderation/create-moderation.ts'
import type { Guardrail } from '#moderation/guardrails/guardrail.ts'
import { createLogThrottle } from '#platform/log-throttle.ts'
import type { Log } from '#platform/log.ts'
import { type Asker, runInTurns } from '#platform/steps/steps.ts'
import { type ProjectRules, ruleSetsOf } from '#policies-in-force/rule-sets.ts'
import type { Snapshot } from '#policies-in-force/snapshot.ts'
import type { CallFacts } from '#policies/rules/facts.ts'
import type { RuleSet } from '#policies/rules/rule-set.ts'
import type { SetRule } from '#policies/rules/set-rule.ts'
import type { PatternEngine } from '#text/pattern-engine.ts'

import { type CallChecks, createCallChecks } from './call-checks.ts'
import type { Checked } from './check.ts'
import type { Findings, CheckedCall, CheckedRequest } from './findings.ts'
import type { GuardDeps } from './guard/open-guard.ts'
import type { GuardedCall, GuardrailDeps } from './guardrails/ask-guardrails.ts'
import {
  type CallGuardrails,
  openCallGuardrails,
  unaskedGuardrails,
} from './guardrails/call-guardrails.ts'
import { checkHistory } from './history/check-history.ts'
import { moderateCall, type ModerationDeps, refuseTooLong } from './moderation/moderate-call.ts'
import { type CallJudge, needsVerdict } from './plain-language/ask-judge.ts'
import type { EstimateTokens } from './redaction/redact-call.ts'
import { cannotEnforce } from './refusals.ts'

/** Prepares the checks of a call. Throws if they cannot be made; `findings` then has what was found out before. */
export type OpenChecks = <Request extends CheckedRequest>(
  call: CheckedCall,
  request: Request,
  findings: Findings,
) => Promise<CallChecks<Request>>

export type ChecksDeps = Omit<ModerationDeps, 'moderation'> &
  Omit<GuardDeps, 'logProblem'> & {
    moderation: () => CurrentModeration
    engine: PatternEngine
    log: Log
    estimate: EstimateTokens
    openQuestions(caller: CheckedCall['principal']): QuestionsOf
    /** Those of the organization that are asked about calls of this project, in their order. */
    guardrailsOf(snapshot: Snapshot, projectId: string | null): readonly Guardrail[]
  } & GuardrailDeps

/** Checks calls by the rules of the snapshot that they are pinned to, by its configuration, and by moderation. */
export function createChecks(deps: ChecksDeps): OpenChecks {
  const logProblem = createLogThrottle({ log: deps.log, now: deps.steadyNow })
  return async (call, request, findings) => {
    const asker = askerOf(call)
    const inForce = ruleSetsOf(call.policies.snapshot, deps.engine)
    const { projectId } = call.principal
    const building = inForce.for(projectId, 'request')
    const forRequest = building instanceof Promise ? await building : building
    const texts = await readTexts(request, asker)
    // No model answers a count of tokens, but the request may contain earlier answers.
    const isAnswered = call.target !== 'count_tokens'
    const hasHistory = texts.history.length > 0
    const forAnswer = isAnswered || hasHistory ? await inForce.for(projectId, 'response') : null
    const all = forAnswer ? [forRequest, forAnswer] : [forRequest]
    const [broken] = all.flatMap(({ unenforceable }) => unenforceable)
    if (broken) throw cannotEnforce(broken)
    // Taken once, so that the whole call uses the same moderation.
    const moderation = deps.moderation()
    requireJudge(moderation, all)
    findings.configured = openConfigured(call)
    noteUnasked(moderation, all, findings)
    const { set } = forRequest
    const sets = all.map((each) => each.set)
    if (sets.some(({ rules }) => rules.length > 0))
      findings.features = { scores: [], categories: [] }
    const questions = deps.openQuestions(call.principal)
    const flagged = readCategories(request.body['flagged_categories'])
    const facts = toFacts(call, request, { texts, flagged })
    const moderated = moderateCall(
      { moderation, local: deps.local, metrics: deps.metrics },
      { call, asker, set, texts, flagged, findings, questions },
    )
    const callJudge = openCallJudge(moderation, call, { findings, questions })
    const guardrails = openGuardrails(deps, moderation, {
      call,
      request,
      findings,
      questions,
      asker,
    })
    const base = { findings, set, facts, texts, moderated, callJudge, guardrails, asker }
    const open = set.openTexts(facts, texts.text)
    const history = forAnswer && hasHistory ? openHistory(base, forAnswer.set, request) : null
    return createCallChecks(
      { ...deps, logProblem },
      {
        call,
        request,
        checked: { ...base, open, history },
        sets,
        answerSet: isAnswered && forAnswer ? forAnswer.set : null,
        questions,
      },
    )
  }
}

/** The texts of a request that are checked; throws if they are too long for that. */
async function readTexts({ turn }: CheckedRequest, asker: Asker): Promise<RequestTexts> {
  const texts = await runInTurns(readRequestTexts(turn), asker)
  refuseTooLong(texts)
  await runInTurns(decodeRequestTexts(texts), asker)
  return texts
}

/** Prepares the check of earlier answers by the rules for answers. */
function openHistory(
  checked: Omit<Checked, 'open' | 'history'>,
  answered: RuleSet,
  { body }: CheckedRequest,
) {
  const { findings, set, facts, texts, moderated, callJudge, asker } = checked
  const mode = findings.configured?.historyMode ?? 'answer'
  return checkHistory({
    mode,
    findings,
    answers: texts.history,
    answered,
    asked: set,
    isRestored: findings.configured?.redaction?.restores === true,
    facts,
    body,
    moderated: moderated.openHistory(answered, mode === 'skip'),
    callJudge,
    asker,
  })
}

/** The operator may have removed the judge after a policy was published. */
function requireJudge({ judge }: CurrentModeration, rules: readonly ProjectRules[]) {
  if (judge) return
  const unjudged = rules.flatMap(({ set }) => set.rules).find(needsVerdict)
  if (unjudged) throw cannotEnforce(unjudged)
}

const isWatchedOnly = ({ mode, rule }: SetRule) => mode === 'monitoring' && rule.needs.judge

/** Notes the monitoring rules that cannot be evaluated. Without a judge, these include the rules in plain language. */
function noteUnasked(
  { judge }: CurrentModeration,
  rules: readonly ProjectRules[],
  findings: Findings,
) {
  const unevaluated = rules.flatMap(({ unevaluated: broken, set }) => [
    ...broken,
    ...(judge ? [] : set.rules).filter(isWatchedOnly).map(({ policyId }) => policyId),
  ])
  findings.unevaluated.push(...new Set(unevaluated))
}

/** Null if no judge is configured; then no enforcing rule needs one. */
function openCallJudge(
  { judge, settings }: CurrentModeration,
  { policies, target }: CheckedCall,
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

type GuardrailCall = Omit<GuardedCall, 'model'> & { request: CheckedRequest; asker: Asker }

/** The operator's come first. A count of tokens asks none of them. Null where there is none. */
function openGuardrails(
  deps: Pick<ChecksDeps, 'guardrailsOf' | keyof GuardrailDeps>,
  { settings }: CurrentModeration,
  { request, ...asked }: GuardrailCall,
): CallGuardrails | null {
  const { policies, principal, target } = asked.call
  const own = deps.guardrailsOf(policies.snapshot, principal.projectId)
  const all = [...settings.guardrails, ...own]
  if (all.length === 0) return null
  return target === 'count_tokens'
    ? unaskedGuardrails(all)
    : openCallGuardrails(deps, all, { ...asked, model: request.model.id })
}

/** A caller that hangs up needs no verdict on its request. Few calls ask for the signal, and making one is not cheap. */
const askerOf = ({ principal, cancellation, onDecided }: CheckedCall): Asker => ({
  owner: shareOf(principal),
  // A search in a thread may take seconds, and all organizations share a few dozen turns.
  onElsewhere: () => onDecided?.(),
  get signal() {
    return cancellation.signal
  },
})

function toFacts(
  call: CheckedCall,
  request: CheckedRequest,
  { texts, flagged }: { texts: RequestTexts; flagged: readonly Category[] },
): CallFacts {
  return {
    direction: 'request',
    model: request.model.id,
    projectId: call.principal.projectId ?? '',
    endpoint: call.target,
    role: texts.role,
    isStreamed: request.isStreamed,
    inputTokens: request.estimate.tokens,
    categories: flagged,
    userText: texts.userText,
    lastMessage: texts.lastMessage,
    system: texts.system,
    tools: texts.tools,
    history: texts.history.flatMap(({ said }) => said),
  }
}

/** The schema of the body has refused all other values. */
const readCategories = (value: unknown): readonly Category[] =>
  Array.isArray(value) ? categories.filter((each) => value.includes(each)) : []
