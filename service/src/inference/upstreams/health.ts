import { BoundedMap } from '#platform/bounded-map.ts'
import { type Breaker, createBreaker } from '#platform/breaker.ts'
import type { Clock } from '#platform/clock.ts'

import type { Upstream } from './catalogue.ts'
import type { UpstreamFailure } from './upstream-failure.ts'

export const breakerPauseMs = 5000
const failuresMax = 5
/** How many organizations must see failures before the upstream is out of service for all of them. */
const organizationsMin = 3
const ownBreakersMax = 1000

/**
 * The circuit breaker of an upstream. A request can provoke the failure of an upstream, and one organization that sends
 * such requests must not take the upstream from the others: its failures open a circuit of its own. The circuit of all
 * opens when three organizations see failures, or when the upstream is unreachable for any request.
 */
export function createUpstreamBreaker(now: Clock) {
  const options = { now, failuresMax, pauseMs: breakerPauseMs }
  const own = new BoundedMap<string, Breaker>(ownBreakersMax)
  /** Since the last success. */
  const failing = new Set<string>()
  let unreachable = 0
  const mayOpen = () => failing.size >= organizationsMin || unreachable >= failuresMax
  const shared = createBreaker({ ...options, mayOpen })

  function findOrAddOwn(organizationId: string): Breaker {
    const breaker = own.get(organizationId) ?? createBreaker(options)
    own.set(organizationId, breaker)
    return breaker
  }

  function succeeded(organizationId: string) {
    own.delete(organizationId)
    failing.clear()
    unreachable = 0
    shared.succeeded()
  }

  function failed(organizationId: string) {
    if (failing.size < organizationsMin) failing.add(organizationId)
    shared.failed()
  }

  return {
    /** Whether calls are refused at the moment. Unlike `mayTry`, it does not claim the probe. */
    isPausing: (organizationId: string): boolean =>
      shared.isPausing() || (own.get(organizationId)?.isPausing() ?? false),
    mayTry(organizationId: string): boolean {
      const breaker = own.get(organizationId)
      // The organization's probe is claimed only if the circuit of all organizations lets the call through.
      if (breaker?.isPausing() || !shared.mayTry()) return false
      return breaker?.mayTry() ?? true
    },
    /** Records what an attempt has shown about the health of the upstream. */
    record(organizationId: string, health: UpstreamFailure['health']) {
      if (health === 'good') succeeded(organizationId)
      if (health === 'bad') findOrAddOwn(organizationId).failed()
      if (health === 'unreachable') unreachable++
      if (health === 'bad' || health === 'unreachable') failed(organizationId)
    },
  }
}

/** The breaker and the retry budget of each upstream, by its name. */
export function createHealths(now: Clock) {
  const healths = new Map<string, ReturnType<typeof createHealth>>()
  const createHealth = () => ({
    breaker: createUpstreamBreaker(now),
    budget: createRetryBudget(),
  })
  return ({ name }: Upstream) => {
    const known = healths.get(name)
    if (known) return known
    const health = createHealth()
    healths.set(name, health)
    return health
  }
}

/** Retries that each call adds to the budget, and the most that the budget can hold. */
const retriesPerCall = 0.1
const retriesMax = 10

/**
 * Keeps retries from making an overload worse: every call adds a tenth of a retry, so an upstream that always
 * fails gets a tenth more calls, and not twice as many.
 */
export function createRetryBudget() {
  let retries = retriesMax
  return {
    noteCall() {
      retries = Math.min(retriesMax, retries + retriesPerCall)
    },
    mayRetry(): boolean {
      if (retries < 1) return false
      retries -= 1
      return true
    },
  }
}
