import type { EventWriter } from '#audit/event-writer.ts'
import type { UpstreamFormats } from '#formats/format.ts'
import { upstreamFormats } from '#formats/formats.ts'
import type { Principal } from '#http/principal.ts'
import type { QuestionsOf } from '#limits/limit-questions.ts'
import type { CurrentModeration } from '#moderation/create-moderation.ts'
import type { AskForCall } from '#moderation/guardrails/create-guardrails.ts'
import type { LocalScorer } from '#moderation/local/local-scorer.ts'
import { ApiError } from '#platform/api-error.ts'
import { threadEntry } from '#platform/assets.ts'
import { Cancellation } from '#platform/calls/cancellation.ts'
import type { Clock } from '#platform/clock.ts'
import type { FindAddresses } from '#platform/egress/find-addresses.ts'
import { createGate } from '#platform/lines/gate.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import { createOriginPools } from '#platform/origin-pools.ts'
import type { Redis } from '#platform/redis.ts'
import { createThreadPool } from '#platform/thread-pool.ts'
import type { TrustedFiles } from '#platform/trusted-file.ts'
import type { PatternEngine } from '#text/pattern-engine.ts'

import type { BillDeps } from './bill.ts'
import type { ToEvent } from './call-event.ts'
import { createInputCounting } from './count/input-counting.ts'
import { createSavedFactors } from './count/saved-factors.ts'
import { countDecision } from './enforcement/count-decision.ts'
import { type ChecksDeps, createChecks } from './enforcement/create-checks.ts'
import { createReplace } from './enforcement/replacement/create-replace.ts'
import { createMonitoring } from './monitoring/create-monitoring.ts'
import { createOpenCalls } from './open-calls.ts'
import { createCallRecords } from './record-call.ts'
import { createSteps, type StepDeps } from './steps.ts'
import { createModelCalls } from './upstreams/call-model.ts'
import { createMediaUrlCheck } from './upstreams/check-media-urls.ts'
import { followCatalogue } from './upstreams/follow-catalogue.ts'
import { originsOf } from './upstreams/origins.ts'
import { createSticky } from './upstreams/sticky.ts'

type Options = Omit<BillDeps, 'toEvent' | 'events'> & {
  events: EventWriter
  now: Clock
  redis: Redis | undefined
  namespace: string
  steadyNow: Clock
  findAddresses: FindAddresses
  log: Log
  metrics: Metrics
  environment: Readonly<Record<string, string | undefined>>
  modelsFile: string | undefined
  files: TrustedFiles
  limitInferenceCall: StepDeps['limitInferenceCall']
  noteBudgets: StepDeps['noteBudgets']
  openQuestions: (caller: Principal) => QuestionsOf
  engine: PatternEngine
  /** The moderation in force, and the scorer in this process. */
  moderation: () => CurrentModeration
  local: LocalScorer
  askGuardrail: AskForCall
  guardrailsOf: ChecksDeps['guardrailsOf']
  /** The formats that upstreams may speak; all of them unless given. */
  formats?: UpstreamFormats
}

/** Builds everything between the inference routes and the upstreams. */
export function createInference(options: Options) {
  const { redis, namespace, steadyNow, log, metrics, environment, modelsFile } = options
  const { formats = upstreamFormats } = options
  const pools = createOriginPools()
  const catalogue = followCatalogue({
    file: modelsFile,
    formats,
    environment,
    log,
    metrics,
    onChange: (current) => pools.keepOnly(originsOf(current)),
  })
  const sticky = createSticky({ redis, namespace })
  const { findAddresses } = options
  const findRefusedMediaUrl = createMediaUrlCheck({ findAddresses, now: steadyNow })
  const upstreams = { pools, findRefusedMediaUrl, now: steadyNow }
  const callModel = createModelCalls({ ...upstreams, sticky, metrics })
  const ending = new Cancellation()
  const { files } = options
  const { moderation, events } = options
  const monitoring = createMonitoring({ ...options, judge: () => moderation().monitoringJudge })
  const toEvent: ToEvent = (call, ending) => {
    if (ending.findings) countDecision(metrics, ending.findings, ending.error)
    return monitoring.toEvent(call, ending)
  }
  const records = createCallRecords(events, toEvent)
  const { factors, stop: stopSaving } = createSavedFactors({ files, log })
  const threads = createCountingThreads()
  const counting = createInputCounting({ ...upstreams, threads, factors })
  const replace = createReplace({ ...options, callModel, counting, catalogue: catalogue.current })
  const openChecks = createChecks({ ...options, formats, replace, estimate: counting.estimate })
  return {
    catalogue: catalogue.current,
    counting,
    steps: createSteps({ ...options, ...records, toEvent, openChecks, callModel, counting }),
    ...records,
    noteBudgets: options.noteBudgets,
    canRecord: events.canTakeMore,
    /** Large bodies of one organization must not delay those of another. */
    readingGate: createGate({ atOnce: 2, waitingMax: 100, waitMs: 10_000 }),
    /** Cancelled when all open calls must end, with the error that their callers get. */
    ending,
    endCalls: () => ending.cancel(shuttingDown()),
    openCalls: createOpenCalls(),
    /** Loads the encodings before the first call, which would otherwise wait for them. */
    warm: () => counting.warm(new Set(catalogue.current().models.map(({ encoding }) => encoding))),
    async stop() {
      catalogue.stop()
      await monitoring.stop()
      await stopSaving()
      await threads.close()
      await pools.close()
    },
  }
}

const createCountingThreads = () =>
  createThreadPool({
    entry: threadEntry,
    threadsMax: 2,
    waitingMax: 10,
    waitingTotalMax: 200,
  })

/** This code makes clients, Codex among them, send the call again. */
const shuttingDown = () =>
  new ApiError('overloaded', 'This gateway process is shutting down; send the request again.')

export type Inference = ReturnType<typeof createInference>
