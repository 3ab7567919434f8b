import type { EventWriter } from '#audit/event-writer.ts'
import { buildMonitoringEvent, type Event, type MonitoringReport } from '#audit/event.ts'
import type { Principal } from '#http/principal.ts'
import { type CallEnding, type ToEvent, toCallEvent } from '#inference/call-event.ts'
import type { WatchedTexts } from '#inference/enforcement/findings.ts'
import { noteUnjudged } from '#inference/enforcement/note-matches.ts'
import type { QuestionsOf } from '#limits/limit-questions.ts'
import { type Judge, type JudgeCall, JudgeFailure } from '#moderation/judge/judge.ts'
import type { Questions } from '#moderation/scorer.ts'
import type { Clock } from '#platform/clock.ts'
import { createLogThrottle } from '#platform/log-throttle.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'

import { type QueueSize, createFairQueue } from './fair-queue.ts'
import { judgeWatched } from './judge-watched.ts'

type Deps = {
  /** The judge that is configured now; null if none is. */
  judge(): Judge | null
  openQuestions(caller: Principal): QuestionsOf
  events: Pick<EventWriter, 'write'>
  now: Clock
  log: Log
  metrics: Pick<Metrics, 'monitoredCalls' | 'monitoringWaiting'>
  sizes?: { most: QueueSize; mostOfOne: QueueSize }
}

const mebibyte = 1024 * 1024
const usualSizes = {
  most: { entries: 1000, bytes: 32 * mebibyte },
  mostOfOne: { entries: 250, bytes: 8 * mebibyte },
}
const callsAtOnce = 4
/** How long a stopping process lets the waiting calls go on; its supervisor does not wait long. */
const stopMaxMs = 2000

/**
 * Asks the judge about plain-language rules in monitoring mode once a call is over. Neither the caller nor the call's event
 * waits for it; what the judge finds becomes an event of its own.
 */
export function createMonitoring(deps: Deps) {
  const { metrics, now } = deps
  const logProblem = createLogThrottle(deps)
  const queue = createFairQueue({
    ...(deps.sizes ?? usualSizes),
    atOnce: callsAtOnce,
    onWaiting: (count) => metrics.monitoringWaiting.set(count),
  })

  /** Writes an event only if something was found. */
  async function record(callEvent: CallEvent, report: MonitoringReport) {
    metrics.monitoredCalls.inc({ outcome: outcomeOf(report) })
    const { matches, unevaluated } = report
    if (matches.length + unevaluated.length === 0) return
    try {
      await deps.events.write(buildMonitoringEvent(callEvent, report, now()))
    } catch (error) {
      logProblem('monitoring_failed', error) // it is reported nowhere else
    }
  }

  const openWork = (watched: readonly WatchedTexts[], callEvent: CallEvent, by: Principal) => ({
    async run(signal: AbortSignal) {
      const questions = refuseAsJudge(deps.openQuestions(by).judge)
      const call = { organizationId: callEvent.organizationId, signal, questions }
      const report = await judgeAll(deps.judge(), watched, call).catch((error: unknown) => {
        if (!signal.aborted) logProblem('monitoring_failed', error)
        return { ...nobodyAsked(watched), reason: signal.aborted ? 'dropped' : 'error' }
      })
      await record(callEvent, report)
    },
    drop: () => record(callEvent, { ...nobodyAsked(watched), reason: 'dropped' }),
  })

  /** A full queue must not cause more writes: the call's own event names what was not judged. */
  function reserve(owner: string, findings: NonNullable<CallEnding['findings']>) {
    const { watched } = findings
    const characters = watched.reduce((sum, { length }) => sum + length, 0)
    const begin = queue.reserve(owner, 2 * characters)
    if (begin) return begin
    metrics.monitoredCalls.inc({ outcome: 'dropped' })
    logProblem('monitoring_dropped', new Error('too many calls wait to be judged'))
    noteUnjudged(
      findings,
      watched.flatMap(({ rules }) => rules),
    )
    return null
  }

  const toEvent: ToEvent = (call, ending) => {
    const { findings } = ending
    if (!findings || findings.watched.length === 0) return toCallEvent(call, ending, now())
    const begin = reserve(call.principal.organizationId, findings)
    const event = toCallEvent(call, ending, now())
    const { id, organizationId, header } = event
    begin?.(openWork(findings.watched.splice(0), { id, organizationId, header }, call.principal))
    return event
  }

  return {
    toEvent,
    /** To be called after the last call. */
    stop: () => queue.stop(stopMaxMs),
  }
}

/**
 * If the organization has had too many questions asked in this minute, its rules count as unevaluated, as if the judge had no
 * time.
 */
const refuseAsJudge = (questions: Questions): Questions => ({
  ...questions,
  begin: (number) =>
    questions.begin(number).catch((error: unknown) => {
      throw new JudgeFailure('overloaded', 'Too many questions were asked.', { cause: error })
    }),
})

async function judgeAll(
  judge: Judge | null,
  watched: readonly WatchedTexts[],
  call: JudgeCall,
): Promise<MonitoringReport> {
  if (!judge) return { ...nobodyAsked(watched), reason: 'no_judge' }
  const reports = await Promise.all(watched.map((each) => judgeWatched(judge, each, call)))
  return {
    matches: reports.flatMap(({ matches }) => matches),
    unevaluated: [...new Set(reports.flatMap(({ unevaluated }) => unevaluated))],
    reason: reports.find(({ reason }) => reason !== null)?.reason ?? null,
    judge: { id: judge.id, calibration: judge.calibrationVersion },
  }
}

/** What is kept of the event of a call. */
type CallEvent = Pick<Event, 'id' | 'organizationId' | 'header'>

const nobodyAsked = (watched: readonly WatchedTexts[]) => ({
  matches: [],
  unevaluated: [...new Set(watched.flatMap(({ rules }) => rules.map(({ policyId }) => policyId)))],
  judge: null,
})

function outcomeOf({ matches, reason }: MonitoringReport): string {
  if (matches.length > 0) return 'matched'
  if (reason === 'dropped') return 'dropped'
  return reason === null ? 'clear' : 'failed'
}
