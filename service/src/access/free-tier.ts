import type { Endpoint } from '@gatehouse/contract/endpoint'

import type { Principal } from '#http/principal.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'
import { toApiError } from '#platform/to-api-error.ts'
import { transact } from '#platform/transaction.ts'

import { createFreeIdentity, type FreeIdentity, type IdentityKeys } from './free-identity.ts'
import {
  claimFreeRequest,
  everybody,
  findFreeRefusal,
  type FreeCounter,
  releaseFreeRequest,
} from './free-request-store.ts'
import { createFreeStandings, type FreeStanding } from './free-standing.ts'
import { unauthorized } from './unauthorized.ts'

/** Somebody without an account, at an endpoint that gives each of them one request. */
export type FreeCaller = FreeIdentity & { readonly endpoint: Endpoint }

type Options = {
  db: Db
  now: Clock
  log: Log
  keys: IdentityKeys
  /** To everybody together; 0: nobody gets one. */
  requestsPerDay: number
  /** What a single one may cost at worst. */
  creditsMax: bigint
}

/** Soft, because neighbours share them: a household often has a /56 to itself, a company a /48. */
const perDayIn = { 56: 4, 48: 16 } as const
const attemptsPerDay = 4

/** The single anonymous request (G4.41). Whatever cannot be known is refused: it is given once, or not at all. */
export function createFreeTier(options: Options) {
  const { db, now, log, keys, requestsPerDay, creditsMax } = options
  const identityOf = createFreeIdentity(keys)
  const standings = createFreeStandings({ now })

  const countersOf = ({ identities, networks }: FreeCaller): FreeCounter[] => [
    // Attempts that were given back count here: one caller must not spend everybody's day with them.
    { network: identities[0], max: attemptsPerDay },
    ...networks.map(({ hash, prefixLength }) => ({ network: hash, max: perDayIn[prefixLength] })),
    { network: everybody, max: requestsPerDay },
  ]
  const claimOf = (caller: FreeCaller) => ({
    ...{ identities: caller.identities, counters: countersOf(caller), now: now() },
  })
  async function findStanding(caller: FreeCaller): Promise<FreeStanding> {
    const found = await findFreeRefusal(db, claimOf(caller)).catch(failClosed)
    standings.note(caller.identities[0], found ?? 'unspent')
    return found ?? 'unspent'
  }
  function refuseSpent({ endpoint }: FreeCaller, standing: FreeStanding) {
    if (standing === 'used') throw alreadyUsed(endpoint)
    if (standing === 'budget_spent') throw noneLeft(now())
  }

  return {
    /** Who calls from this address. Whoever has nothing left hears it here, before a body is read for them. */
    async callerOf(endpoint: Endpoint, address: string): Promise<FreeCaller> {
      if (requestsPerDay === 0) throw notGiven(endpoint)
      const identity = identityOf(address)
      if (!identity) throw addressUnknown(endpoint)
      const caller = { ...identity, endpoint }
      refuseSpent(caller, standings.of(caller.identities[0]) ?? (await findStanding(caller)))
      return caller
    },

    /** Spends the request. A process that dies after this has spent it too. */
    async claim(caller: FreeCaller, requestId: string, worstCaseCredits: bigint) {
      if (worstCaseCredits > creditsMax) throw tooDear(worstCaseCredits, creditsMax)
      const claim = { ...claimOf(caller), requestId }
      const outcome = await transact(db, (tx) => claimFreeRequest(tx, claim)).catch(failClosed)
      standings.note(caller.identities[0], outcome === 'claimed' ? 'used' : outcome)
      if (outcome !== 'claimed') refuseSpent(caller, outcome)
    },

    /**
     * Gives the request back, for a model that never began to answer; but not what it took of the day's budget,
     * or calls that are bound to fail could be repeated without end. Never fails: what cannot be given back
     * stays spent.
     */
    async release({ identities }: FreeCaller, requestId: string) {
      try {
        await transact(db, (tx) => releaseFreeRequest(tx, { identities, requestId }))
        standings.forget(identities[0])
      } catch (error) {
        log.problem('giving a free request back', error, requestId)
      }
    },
  }
}
export type FreeTier = ReturnType<typeof createFreeTier>

/** What stands for such a caller wherever one is counted or logged. Ids of organizations begin otherwise. */
export function anonymousPrincipal({ identities }: FreeCaller): Principal {
  const id = `anonymous_${identities[0].toString('hex', 0, 12)}`
  return {
    ...{ kind: 'anonymous', organizationId: id, projectId: null, credentialId: id },
    permissions: new Set(['model.invoke']),
    ...{ plan: 'free', paidMicroUsd: 0 },
  }
}

function failClosed(error: unknown): never {
  throw toApiError(error)
}

const notGiven = (endpoint: Endpoint) =>
  unauthorized(
    endpoint,
    'missing_credentials',
    'This gateway gives no anonymous requests: send Authorization: Bearer with your key.',
  )

const addressUnknown = (endpoint: Endpoint) =>
  unauthorized(
    endpoint,
    'missing_credentials',
    'Your address is not known, so no anonymous request can be given: send Authorization: Bearer with your key.',
  )

const alreadyUsed = (endpoint: Endpoint) =>
  unauthorized(
    endpoint,
    'free_request_used',
    'The one anonymous request from your network has been used. Sign up to continue.',
  )

const tooDear = (worstCase: bigint, max: bigint) =>
  new ApiError(
    'invalid_request',
    `This call may cost up to ${worstCase} credits, more than the ${max} of an anonymous request. Ask for less output, or sign up.`,
  )

const dayMs = 24 * 60 * 60 * 1000

function noneLeft(now: Date): ApiError {
  const waitSeconds = Math.max(1, Math.ceil((dayMs - (now.getTime() % dayMs)) / 1000))
  return new ApiError(
    'rate_limit_exceeded',
    `No anonymous requests are left today; there are new ones after midnight UTC. Retry after ${waitSeconds}s, or sign up to continue now.`,
    { headers: { 'retry-after': String(waitSeconds) } },
  )
}
