import { randomBytes } from 'node:crypto'

import { createMeter, type MeteredUsage } from '#inference/metering/meter.ts'
import type { CallModel } from '#inference/upstreams/call-model.ts'
import type { Catalogue, CatalogueModel } from '#inference/upstreams/catalogue.ts'
import type { ModerationSettings } from '#moderation/read-moderation.ts'
import { type Cancellation, cancellationOf } from '#platform/calls/cancellation.ts'
import type { Clock } from '#platform/clock.ts'
import { within } from '#platform/deadline.ts'
import { createCallPool } from '#platform/lines/call-pool.ts'
import { createLogThrottle } from '#platform/log-throttle.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'

import { judgeText } from './judge-text.ts'
import { readReplacement } from './read-replacement.ts'
import { replacementMaxTokens, writePrompt } from './replacement-prompt.ts'
import {
  type Blocked,
  type Replace,
  type ReplacedCall,
  type Replacement,
  ReplacementFailure,
} from './replacement.ts'

type Deps = {
  callModel: CallModel
  catalogue: () => Catalogue
  moderation: () => { settings: Pick<ModerationSettings, 'rewriterModel'> }
  counting: {
    countText(text: string, encoding: CatalogueModel['encoding'], owner: string): Promise<number>
  }
  metrics: Metrics
  log: Log
  steadyNow: Clock
  deadlineMs?: number
}

/** The limit for waiting and writing together, because a caller is waiting. */
const defaultDeadlineMs = 5000

/** Limits the replacements of all calls of a process: they are the operator's cost, and no organization pays for them. */
const createRewriterPool = () =>
  createCallPool({
    atOnce: 16,
    waitingMax: 128,
    waitingOfOneMax: 32,
    createRefusal: () =>
      new ReplacementFailure('overloaded', 'Too many texts wait to be replaced.'),
  })

/** Has replacements written by the model that the operator has named as rewriter. No credits are held or charged for them. */
export function createReplace(deps: Deps): Replace {
  const { metrics, deadlineMs = defaultDeadlineMs } = deps
  const pool = createRewriterPool()
  const logProblem = createLogThrottle({ log: deps.log, now: deps.steadyNow })

  async function write(blocked: Blocked, call: ReplacedCall): Promise<Replacement> {
    const model = findRewriter(deps)
    await call.questions.begin(1).catch((error: unknown) => {
      throw new ReplacementFailure('over_limit', 'Too many texts are replaced.', { cause: error })
    })
    const ask = (signal: AbortSignal) =>
      pool.run(call.organizationId, signal, () =>
        askRewriter(deps, { model, blocked, call, cancellation: cancellationOf(signal) }),
      )
    return within(deadlineMs, late, ask, call.cancellation.signal)
  }

  return async (blocked, call) => {
    const { action } = blocked
    const stop = metrics.replacementSeconds.startTimer()
    try {
      const replacement = await write(blocked, call)
      // All of it is checked before any of it is sent.
      await judgeText(replacement.text, call.judge).catch((error: unknown) => {
        throw new ReplacementFailure('blocked', 'The replacement may not leave.', { cause: error })
      })
      metrics.replacements.inc({ action, outcome: 'replaced' })
      return replacement
    } catch (error) {
      const outcome = outcomeOf(error, call)
      metrics.replacements.inc({ action, outcome })
      if (!unlogged.includes(outcome)) logProblem('replacement_failed', error)
      return null
    } finally {
      stop()
    }
  }
}

/** Failures that an operator could not fix: what a rewriter wrote, a caller that has hung up or has asked too much. */
const unlogged: readonly string[] = ['unusable', 'blocked', 'given_up', 'over_limit']

function outcomeOf(error: unknown, { cancellation }: ReplacedCall): string {
  if (cancellation.isCancelled) return 'given_up'
  return error instanceof ReplacementFailure ? error.outcome : 'failed'
}

function findRewriter({ moderation, catalogue }: Deps): CatalogueModel {
  const id = moderation().settings.rewriterModel
  if (id === null) {
    throw new ReplacementFailure('unconfigured', 'MODERATION_FILE names no rewriter.')
  }
  const model = catalogue().find(id)
  if (model) return model
  throw new ReplacementFailure('unconfigured', `The rewriter '${id}' is no model of the catalogue.`)
}

const late = () => new ReplacementFailure('late', 'The rewriter has not answered in time.')

type Asked = {
  model: CatalogueModel
  blocked: Blocked
  call: ReplacedCall
  cancellation: Cancellation
}

async function askRewriter(deps: Deps, asked: Asked): Promise<Replacement> {
  const { model, blocked, call, cancellation } = asked
  const { organizationId } = call
  const turn = writePrompt(blocked, randomBytes(8).toString('hex'))
  const meter = createMeter({
    inputTokens: Math.ceil(JSON.stringify(turn).length / charactersPerToken),
    maxOutputTokens: replacementMaxTokens,
    countText: (text) => deps.counting.countText(text, model.encoding, organizationId),
    hiddenTokensPerSecond: () => 0,
    isHungUp: () => false,
    now: deps.steadyNow,
  })
  const pieces = deps.callModel({
    organizationId,
    model,
    callerFormat: null,
    body: {},
    turn,
    maxOutputTokens: Math.min(replacementMaxTokens, model.maxOutputTokens),
    headers: {},
    isPlain: model.canAnswerPlainly,
    cancellation,
    // A plain answer that comes too late is of no use here.
    ending: cancellation,
    onAttempt: meter.noteSent,
    onAnswering: () => undefined,
    onPiece: meter.observe,
    onUnseen: () => undefined,
  })
  try {
    const text = await readReplacement(pieces)
    const { inputTokens, outputTokens } = await meter.usage()
    if (outputTokens > replacementMaxTokens) {
      throw new ReplacementFailure('unusable', 'The rewriter has written too much.')
    }
    return { text, model: model.id, tokens: inputTokens + outputTokens }
  } finally {
    countTokens(deps.metrics, await meter.usage())
  }
}

/** An estimate for the few upstreams that report no usage. Nothing is charged by it. */
const charactersPerToken = 4

function countTokens({ replacementTokens }: Metrics, { inputTokens, outputTokens }: MeteredUsage) {
  replacementTokens.inc({ kind: 'input' }, inputTokens)
  replacementTokens.inc({ kind: 'output' }, outputTokens)
}
