import { createGate } from '#platform/gate.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import { createOriginPools } from '#platform/origin-pools.ts'
import type { Redis } from '#platform/redis.ts'
import { createThreadPool } from '#platform/thread-pool.ts'
import type { TrustedFiles } from '#platform/trusted-file.ts'

import type { BillTools } from './bill.ts'
import { createInputCounting } from './count/input-counting.ts'
import { keepFactors } from './count/keep-factors.ts'
import { protocols } from './protocols.ts'
import { createSteps, type StepTools } from './steps.ts'
import { createModelCalls } from './upstreams/call-model.ts'
import { followCatalogue } from './upstreams/follow-catalogue.ts'
import { originsOf } from './upstreams/origins.ts'
import { createSticky } from './upstreams/sticky.ts'

type Options = BillTools & {
  redis: Redis | undefined
  namespace: string
  log: Log
  metrics: Metrics
  environment: Readonly<Record<string, string | undefined>>
  modelsFile: string | undefined
  files: TrustedFiles
  limitInferenceCall: StepTools['limitInferenceCall']
}

/** Everything that stands between an inference route and the upstreams. */
export function createInference(options: Options) {
  const { redis, namespace, now, log, metrics, environment, modelsFile } = options
  const pools = createOriginPools()
  const catalogue = followCatalogue({
    ...{ file: modelsFile, environment, log, metrics },
    onChange: (current) => pools.keepOnly(originsOf(current)),
  })
  const sticky = createSticky({ redis, namespace })
  const callModel = createModelCalls({ pools, protocols, sticky, metrics, now })
  const { limitInferenceCall, files } = options
  const kept = keepFactors({ files, log })
  const threads = createThreadPool({
    ...{ entry: new URL('../thread.ts', import.meta.url), threadsMax: 2, waitingMax: 100 },
    deadlineMs: 10_000,
  })
  const counting = createInputCounting({ threads, pools, factors: kept.factors, now })
  return {
    catalogue: catalogue.current,
    counting,
    steps: createSteps({ ...options, limitInferenceCall, callModel, counting }),
    /** Large bodies of one organization do not keep another's waiting. */
    readingGate: createGate({ atOnce: 2, waitingMax: 100, waitMs: 10_000 }),
    /** Before the first call, which would otherwise wait for it. */
    warm: () => counting.warm(new Set(catalogue.current().models.map(({ encoding }) => encoding))),
    async stop() {
      catalogue.stop()
      await kept.stop()
      await threads.close()
      await pools.close()
    },
  }
}
export type Inference = ReturnType<typeof createInference>
