import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe } from 'node:diagnostics_channel'
import { monitorEventLoopDelay, PerformanceObserver } from 'node:perf_hooks'

/** Milliseconds, by the name of what took them. */
export type Marks = Record<string, number[]>

let marks: Marks = {}
let loopDelay: ReturnType<typeof monitorEventLoopDelay> | undefined
let isMarking = false

export function mark(name: string, ms: number) {
  if (isMarking) (marks[name] ??= []).push(ms)
}

/** When the current request was received, and when its last step ended. */
type Call = { startedAt: number; settledAt: number | undefined }
const currentCall = new AsyncLocalStorage<Call>()

export const sinceRequest = () => {
  const call = currentCall.getStore()
  return call && performance.now() - call.startedAt
}

export function noteSettled() {
  const call = currentCall.getStore()
  if (call) call.settledAt = performance.now()
}

/** Requests by the time from their head to their last byte. */
function watchRequests() {
  const calls = new WeakMap<object, Call>()
  subscribe('http.server.request.start', (message) => {
    const { response } = message as { response: object }
    const call: Call = { startedAt: performance.now(), settledAt: undefined }
    calls.set(response, call)
    currentCall.enterWith(call)
  })
  subscribe('http.server.response.finish', (message) => {
    const call = calls.get((message as { response: object }).response)
    if (call?.settledAt === undefined) return
    mark('after settling, until the answer is written', performance.now() - call.settledAt)
    mark('whole call', performance.now() - call.startedAt)
  })
}

function watchCollections() {
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) mark('pause of the garbage collector', duration)
  }).observe({ entryTypes: ['gc'] })
}

function start() {
  marks = {}
  isMarking = true
  loopDelay = monitorEventLoopDelay({ resolution: 1 })
  loopDelay.enable()
}

/** The loop's delays are known by their percentiles only: one of each stands for the window. */
function stop(): Marks {
  isMarking = false
  loopDelay?.disable()
  if (loopDelay) {
    marks['event loop delay, p50 of a window'] = [loopDelay.percentile(50) / 1e6]
    marks['event loop delay, p99 of a window'] = [loopDelay.percentile(99) / 1e6]
  }
  return marks
}

/** Marks what happens between two messages of the parent, and answers the second with it. */
export function listenToParent() {
  watchRequests()
  watchCollections()
  process.on('message', (message) => {
    if (message === 'start trace') start()
    if (message === 'stop trace') process.send?.(stop())
  })
  // The channel to the parent must not keep a process alive that has ended otherwise.
  process.channel?.unref()
}
