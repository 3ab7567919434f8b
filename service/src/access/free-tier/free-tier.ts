import type { Endpoint } from '@gatehouse/contract/endpoint'

import { unauthorized } from '#access/unauthorized.ts'
import type { Principal } from '#http/principal.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'
import { toApiError } from '#platform/to-api-error.ts'
import { transact } from '#platform/transaction.ts'

import { createFreeIdentity, type FreeIdentity, type IdentityKeys } from './free-identity.ts'
import { createFreeRequestMemory, type FreeRequestStatus } from './free-request-memory.ts'
import {
  claimFreeRequest,
  findFreeRefusal,
  type FreeCounter,
  releaseFreeRequest,
  wholeInternet,
} from './free-request-store.ts'

/** An anonymous caller of an endpoint that takes free requests. */
export type FreeCaller = FreeIdentity & { readonly endpoint: Endpoint }

type Options = {
  db: Db
  now: Clock
  steadyNow: Clock
  log: Log
  keys: IdentityKeys
  /** For all callers together; 0 switches free requests off. */
  requestsPerDay: number
  /** The largest worst-case cost of one free request. */
  creditsMax: bigint
}

/** By IPv6 prefix length. More than one, because neighbours share a prefix: a household often has a /56, a company a /48. */
const requestsPerDayInNetwork = { 56: 4, 48: 16 } as const
const attemptsPerDay = 4

/**
 * The one free request of an anonymous caller (docs/specification/inference.md#free-request). It fails
 * closed: when the database cannot be read, the request is refused.
 */
export function createFreeTier(options: Options) {
  const { db, now, steadyNow, log, keys, requestsPerDay, creditsMax } = options
  const identify = createFreeIdentity(keys)
  const memory = createFreeRequestMemory({ now, steadyNow })

  const buildCounters = ({ identities, networks }: FreeCaller): FreeCounter[] => [
    // Released requests stay counted here, so that one caller cannot spend the whole day's budget with them.
    { network: identities[0], max: attemptsPerDay },
    ...networks.map(({ hash, prefixLength }) => ({
      network: hash,
      max: requestsPerDayInNetwork[prefixLength],
    })),
    { network: wholeInternet, max: requestsPerDay },
  ]
  const buildClaim = (caller: FreeCaller) => ({
    identities: caller.identities,
    counters: buildCounters(caller),
    now: now(),
  })
  async function readStatus(caller: FreeCaller): Promise<FreeRequestStatus> {
    const refusal = await findFreeRefusal(db, buildClaim(caller)).catch(failClosed)
    const status = refusal ?? 'unspent'
    memory.note(caller.identities[0], status)
    return status
  }
  function refuseSpent({ endpoint }: FreeCaller, status: FreeRequestStatus) {
    if (status === 'used') throw alreadyUsed(endpoint)
    if (status === 'budget_spent') throw budgetSpent(now())
  }

  return {
    /** The anonymous caller at this address. Throws before the body is read when it has no free request left. */
    async identifyCaller(endpoint: Endpoint, address: string): Promise<FreeCaller> {
      if (requestsPerDay === 0) throw notOffered(endpoint)
      const identity = identify(address)
      if (!identity) throw addressUnknown(endpoint)
      const caller = { ...identity, endpoint }
      refuseSpent(caller, memory.get(caller.identities[0]) ?? (await readStatus(caller)))
      return caller
    },

    /** Spends the free request. It stays spent when the process dies afterwards. */
    async claim(caller: FreeCaller, requestId: string, worstCaseCredits: bigint) {
      if (worstCaseCredits > creditsMax) throw tooExpensive(worstCaseCredits, creditsMax)
      const claim = { ...buildClaim(caller), requestId }
      const outcome = await transact(db, (tx) => claimFreeRequest(tx, claim)).catch(failClosed)
      memory.note(caller.identities[0], outcome === 'claimed' ? 'used' : outcome)
      if (outcome !== 'claimed') refuseSpent(caller, outcome)
    },

    /**
     * Gives the free request back when the model never began to answer. The day's counters keep it, because
     * calls that always fail could be repeated without end otherwise. Never throws: after a failure the
     * request stays spent.
     */
    async release({ identities }: FreeCaller, requestId: string) {
      try {
        await transact(db, (tx) => releaseFreeRequest(tx, { identities, requestId }))
        memory.forget(identities[0])
      } catch (error) {
        log.problem('free_request_release_failed', error, requestId)
      }
    },
  }
}
export type FreeTier = ReturnType<typeof createFreeTier>

/** The principal that limits and the log use for an anonymous caller. No organization id starts with `anonymous_`. */
export function createAnonymousPrincipal({ identities }: FreeCaller): Principal {
  const id = `anonymous_${identities[0].toString('hex', 0, 12)}`
  return {
    kind: 'anonymous',
    organizationId: id,
    projectId: null,
    projectName: null,
    credentialId: id,
    subject: id,
    userId: null,
    isBoundToProject: false,
    permissions: new Set(['model.invoke']),
    plan: 'free',
    paidMicroUsd: 0,
    limitOverrides: null,
    budgets: null,
    allowedModels: null,
    projectLabels: null,
    member: null,
    session: null,
  }
}

function failClosed(error: unknown): never {
  throw toApiError(error)
}

const notOffered = (endpoint: Endpoint) =>
  unauthorized(
    endpoint,
    'missing_credentials',
    'This gateway offers no free requests: send Authorization: Bearer followed by your key.',
  )

const addressUnknown = (endpoint: Endpoint) =>
  unauthorized(
    endpoint,
    'missing_credentials',
    'Your address is not a valid IP address, so you cannot use a free request: send Authorization: Bearer followed by your key.',
  )

const alreadyUsed = (endpoint: Endpoint) =>
  unauthorized(
    endpoint,
    'free_request_used',
    'The one free request of your network has been used. Sign up to continue.',
  )

const tooExpensive = (worstCase: bigint, max: bigint) =>
  new ApiError(
    'invalid_request',
    `This call may cost up to ${worstCase} credits, more than the ${max} of a free request. Allow fewer output tokens, or sign up.`,
  )

const dayMs = 24 * 60 * 60 * 1000

function budgetSpent(now: Date): ApiError {
  const waitSeconds = Math.max(1, Math.ceil((dayMs - (now.getTime() % dayMs)) / 1000))
  return new ApiError(
    'rate_limit_exceeded',
    `All free requests of today have been used; there are new ones after midnight UTC. Retry after ${waitSeconds}s, or sign up to continue now.`,
    { headers: { 'retry-after': String(waitSeconds) } },
  )
}
