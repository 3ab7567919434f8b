import { randomBytes } from 'node:crypto'

import { createPost } from '#moderation/post-scorer.ts'
import type { JudgeSettings, ModelPlace } from '#moderation/read-moderation.ts'
import type { Clock } from '#platform/clock.ts'
import type { CallPool } from '#platform/lines/call-pool.ts'
import type { Metrics } from '#platform/metrics.ts'
import type { OriginPools } from '#platform/origin-pools.ts'

import { createCalibration } from './calibration.ts'
import { createJudge } from './create-judge.ts'
import type { Judge } from './judge.ts'
import { noVerdict } from './models/judge-reply.ts'
import { openJudgeModel } from './models/open-judge-model.ts'
import type { VerdictCache } from './verdict-cache.ts'

type Deps = {
  pools: Pick<OriginPools, 'collect'>
  /** These outlive a configuration. */
  cache: VerdictCache
  pool: CallPool
  steadyNow: Clock
  metrics: Metrics
}

/** The judge as the operator has configured it. */
export function openJudge(settings: JudgeSettings, deps: Deps): Judge {
  const { adapter, place, calibration, deadlineMs, hedgeMs } = settings
  const { pools, cache, pool, metrics, steadyNow } = deps
  const model = place?.model ?? adapter
  const id = `${adapter}/${model}`
  const createNonce = () => randomBytes(16).toString('hex')
  const post = createChatPost(place, deadlineMs, pools)
  return createJudge({
    id,
    model: openJudgeModel(adapter, { model, post, createNonce }),
    cache,
    pool,
    metrics,
    now: steadyNow,
    deadlineMs,
    hedgeMs,
    ...(calibration && {
      calibration: createCalibration(calibration.version, { [id]: calibration.points }),
    }),
  })
}

/** The model gets replies with any status, because some statuses mean that the judge is misconfigured. */
function createChatPost(place: ModelPlace | null, deadlineMs: number, pools: Deps['pools']) {
  if (!place) return () => Promise.reject(new Error('The judge has no address.'))
  const post = createPost(pools, place, deadlineMs)
  return async (asked: object, signal: AbortSignal) => {
    const { status, body, isComplete } = await post('/v1/chat/completions', asked, signal)
    if (!isComplete) throw noVerdict('The reply of the judge is too long.')
    return { status, body: body.toString() }
  }
}
