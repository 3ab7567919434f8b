import type { Clock } from '#platform/clock.ts'
import type { Egress } from '#platform/egress.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import { createOriginPools } from '#platform/origin-pools.ts'
import type { Asker } from '#platform/steps/steps.ts'
import { localGrid, type WindowGrid } from '#text/windows/window-grid.ts'

import { categories, type Category } from './categories.ts'
import { createScorers, type Moderation } from './create-scorers.ts'
import { followModerationFile } from './follow-moderation-file.ts'
import { createGuardrails } from './guardrails/create-guardrails.ts'
import { createSendQuestion } from './guardrails/send-question.ts'
import { createJudgePool } from './judge/ask-model.ts'
import { type Judge, type JudgedContent, type JudgedRule, JudgeFailure } from './judge/judge.ts'
import { openJudge } from './judge/open-judge.ts'
import { createVerdictCache } from './judge/verdict-cache.ts'
import { createLocalScorer, type LocalScorer } from './local/local-scorer.ts'
import { blockingCategories, joinVerdicts, openModeration } from './moderate.ts'
import { scorerOriginOf } from './post-scorer.ts'
import { type ModerationSettings, noModeration, type ReadOptions } from './read-moderation.ts'
import { createScoreCache, type ScoreCache } from './score-cache.ts'
import type { ScoringCall } from './scorer.ts'

/** What is in force: the scorers, and the judge of rules in plain language if there is one. */
export type CurrentModeration = Moderation & {
  readonly judge: Judge | null
  /** The same model for monitoring rules. Neither their number nor their failures affect what callers wait for. */
  readonly monitoringJudge: Judge | null
}

const monitoringCallsAtOnce = 8

const roles = { request: 'user', response: 'assistant' } as const

type Options = ReadOptions & {
  file: string | undefined
  now: Clock
  steadyNow: Clock
  log: Log
  metrics: Metrics
  /** For the guardrails of organizations, whose addresses tenants choose. */
  tenantEgress: Pick<Egress, 'request'>
  everyMs?: number
}

/** Moderation as the operator has configured it, now and after every change of the file. */
export function createModeration(options: Options) {
  const { now, log, metrics } = options
  const pools = createOriginPools()
  const cache = createScoreCache({ now, metrics })
  const local = rememberScores(createLocalScorer(), cache)
  const openJudges = createJudges({ pools, metrics, now, steadyNow: options.steadyNow })
  const build = (settings: ModerationSettings): CurrentModeration => ({
    ...createScorers(settings, { pools, cache, now, log, metrics }),
    ...openJudges(settings),
  })
  let current = build(noModeration)

  function use(settings: ModerationSettings) {
    current = build(settings)
    const places = [...settings.scorers, settings.judge].flatMap((each) => each?.place ?? [])
    const guardrails = settings.guardrails.map(({ url }) => ({ baseUrl: url }))
    pools.keepOnly([...places, ...guardrails].map(scorerOriginOf))
  }

  const sendQuestion = createSendQuestion({ pools, egress: options.tenantEgress })
  const following = followModerationFile({ ...options, onSettings: use })
  return {
    current: () => current,
    ...createTextScoring(() => current, local),
    judgeText: createJudgeText(() => current.judge),
    /** The scorer that ships with this process and is always available. */
    local,
    sendQuestion,
    askGuardrail: createGuardrails({ ...options, send: sendQuestion }),
    async stop() {
      following.stop()
      await pools.close()
    },
  }
}

type JudgesOptions = Pick<Options, 'metrics' | 'now' | 'steadyNow'> & {
  pools: ReturnType<typeof createOriginPools>
}

/** The cache and the pool of calls outlive a configuration. */
function createJudges({ now, ...deps }: JudgesOptions) {
  const { metrics } = deps
  const cache = createVerdictCache(now)
  const judging = { ...deps, cache, pool: createJudgePool() }
  const monitoring = {
    ...judging,
    pool: createJudgePool(monitoringCallsAtOnce),
    metrics: { ...metrics, judgeIsPausing: metrics.monitoringJudgeIsPausing },
  }
  return ({ judge }: ModerationSettings) => ({
    judge: judge && openJudge(judge, judging),
    monitoringJudge: judge && openJudge(judge, monitoring),
  })
}

/** Judges a text that belongs to no call. Has no score if there is no judge, or if it has not answered. */
function createJudgeText(currentJudge: () => Judge | null) {
  return async (
    rule: JudgedRule,
    content: JudgedContent,
    { owner, signal }: Asker,
    mayAsk: () => Promise<void>,
  ): Promise<{ score: number | null; calls: number }> => {
    let calls = 0
    const beforeAsking = async () => {
      await mayAsk()
      calls++
    }
    try {
      const call = { organizationId: owner, signal, beforeAsking }
      const scores = await currentJudge()?.judge([rule], content, call)
      return { score: scores?.get(rule.policyId) ?? null, calls }
    } catch (error) {
      if (error instanceof JudgeFailure) return { score: null, calls }
      throw error
    }
  }
}

/** For which organization texts are scored that belong to no call. */
type ScoringAsker = Asker & Pick<ScoringCall, 'questions'>
type ScoredText = { text: string; direction: 'request' | 'response' }
type Asked = { blocking: readonly Category[]; read?: ReadonlySet<Category> }

/** How texts are scored that belong to no call: those of trials and simulations. */
function createTextScoring(current: () => CurrentModeration, local: LocalScorer) {
  /** `sent` is what scorers outside of this process get, where that is another text. */
  async function check(
    { text, direction, sent = text }: ScoredText & { sent?: string },
    asked: Asked,
    { owner, signal, questions }: ScoringAsker,
  ) {
    const checks = openModeration({
      moderation: current(),
      local,
      ...asked,
      organizationId: owner,
      questions,
    })
    const role = roles[direction]
    const found = await checks.checkLocally([{ role, text }], signal)
    return joinVerdicts(found, await checks.checkRemotely([{ role, text: sent }], signal))
  }

  return {
    /** Scores a text in those of these categories that some scorer covers. */
    async scoreText(
      scored: ScoredText,
      wanted: ReadonlySet<string>,
      asker: ScoringAsker,
    ): Promise<ReadonlyMap<string, number>> {
      const read = new Set(categories.filter((category) => wanted.has(category)))
      return (await check(scored, { blocking: [], read }, asker)).scores
    },
    /** How answers are cut for those that score a category. */
    gridOf: (category: string): WindowGrid => {
      const { covers, grid } = current()
      return (covers as ReadonlySet<string>).has(category) ? grid : localGrid
    },
    /** The categories that a request with this text reaches, of these and those always blocked; null: it cannot be told. */
    async findCategories(
      asked: { text: string; sent: string },
      flagged: readonly Category[],
      asker: ScoringAsker,
    ): Promise<readonly Category[] | null> {
      const wanted = { blocking: blockingCategories(flagged) }
      const verdict = await check({ ...asked, direction: 'request' }, wanted, asker)
      return verdict.isUnavailable ? null : verdict.reached
    },
  }
}

/** The history of a chat, which is sent with every turn, need not be scored again. The model does not change in a process. */
const rememberScores = (scorer: LocalScorer, cache: ScoreCache): LocalScorer => ({
  ...scorer,
  score: (segments, call) =>
    cache.score({ scorer, identity: scorer.name, grid: null }, segments, call),
})
