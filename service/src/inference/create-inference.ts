import type { UpstreamFormats } from '#formats/format.ts'
import { upstreamFormats } from '#formats/formats.ts'
import { ApiError } from '#platform/api-error.ts'
import { Cancellation } from '#platform/calls/cancellation.ts'
import type { Clock } from '#platform/clock.ts'
import type { FindAddresses } from '#platform/egress.ts'
import { createGate } from '#platform/gate.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import { createOriginPools } from '#platform/origin-pools.ts'
import type { Redis } from '#platform/redis.ts'
import { createThreadPool } from '#platform/thread-pool.ts'
import type { TrustedFiles } from '#platform/trusted-file.ts'

import type { BillDeps } from './bill.ts'
import { createInputCounting } from './count/input-counting.ts'
import { createSavedFactors } from './count/saved-factors.ts'
import { createOpenCalls } from './open-calls.ts'
import { createRecordRefusal } from './record-refusal.ts'
import { createSteps, type StepDeps } from './steps.ts'
import { createModelCalls } from './upstreams/call-model.ts'
import { createMediaUrlCheck } from './upstreams/check-media-urls.ts'
import { followCatalogue } from './upstreams/follow-catalogue.ts'
import { originsOf } from './upstreams/origins.ts'
import { createSticky } from './upstreams/sticky.ts'

type Options = BillDeps & {
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
  /** The formats that upstreams may speak; all of them unless given. */
  formats?: UpstreamFormats
}

/** Builds everything between the inference routes and the upstreams. */
export function createInference(options: Options) {
  const { redis, namespace, steadyNow, log, metrics, environment, modelsFile } = options
  const pools = createOriginPools()
  const catalogue = followCatalogue({
    file: modelsFile,
    formats: options.formats ?? upstreamFormats,
    environment,
    log,
    metrics,
    onChange: (current) => pools.keepOnly(originsOf(current)),
  })
  const sticky = createSticky({ redis, namespace })
  const { findAddresses } = options
  const findRefusedMediaUrl = createMediaUrlCheck({ findAddresses, now: steadyNow })
  const callModel = createModelCalls({
    pools,
    sticky,
    findRefusedMediaUrl,
    metrics,
    now: steadyNow,
  })
  const ending = new Cancellation()
  const { limitInferenceCall, files } = options
  const recordRefusal = createRecordRefusal(options.events, options.now)
  const { factors, stop: stopSaving } = createSavedFactors({ files, log })
  const threads = createThreadPool({
    entry: new URL('../thread.ts', import.meta.url),
    threadsMax: 2,
    waitingMax: 10,
    waitingTotalMax: 200,
  })
  const counting = createInputCounting({
    threads,
    pools,
    factors,
    findRefusedMediaUrl,
    now: steadyNow,
  })
  return {
    catalogue: catalogue.current,
    counting,
    steps: createSteps({ ...options, limitInferenceCall, recordRefusal, callModel, counting }),
    recordRefusal,
    canRecord: options.events.canTakeMore,
    /** Large bodies of one organization must not delay those of another. */
    readingGate: createGate({ atOnce: 2, waitingMax: 100, waitMs: 10_000 }),
    /** Cancelled when the open calls must end, with the error that their callers get. */
    ending,
    endCalls: () => ending.cancel(shuttingDown()),
    openCalls: createOpenCalls(),
    /** Loads the encodings before the first call, which would otherwise wait for them. */
    warm: () => counting.warm(new Set(catalogue.current().models.map(({ encoding }) => encoding))),
    async stop() {
      catalogue.stop()
      await stopSaving()
      await threads.close()
      await pools.close()
    },
  }
}

/** The code tells clients, Codex among them, to send the call again. */
const shuttingDown = () =>
  new ApiError('overloaded', 'This gateway process is shutting down; send the request again.')

export type Inference = ReturnType<typeof createInference>
