import { lookup, Resolver } from 'node:dns/promises'

import { EgressFailed } from './egress-failed.ts'

/** All addresses of a host name, of both families; none where the name does not exist. */
export type FindAddresses = (host: string) => Promise<readonly string[]>

/** The addresses a call may be tried at. */
export type Resolve = (host: string) => Promise<readonly { address: string }[]>

type Families = Pick<Resolver, 'resolve4' | 'resolve6'>

/**
 * For names that are only checked and not called. Tenants choose them, and thereby how slow their name servers are:
 * unlike `lookup`, a resolver occupies none of the few threads on which files and upstreams wait. The hosts file is not
 * read.
 */
export function createAddressFinder(
  resolver: Families = new Resolver({ timeout: 400, tries: 2 }),
): FindAddresses {
  return async (host) => {
    const families = [resolver.resolve4(host), resolver.resolve6(host)]
    return (await Promise.all(families.map((answer) => answer.catch(noneIfMissing)))).flat()
  }
}

function noneIfMissing(error: unknown): string[] {
  const { code = '' } = Object(error) as { code?: string }
  if (code === 'ENODATA' || code === 'ENOTFOUND') return []
  throw error
}

/** For names that the operator has chosen: reads the hosts file too, and has no deadline of its own. */
export const resolveBySystem: Resolve = (host) => lookup(host, { all: true })

type TenantResolverOptions = { resolver?: Families; deadlineMs?: number }
type Lookup = { found: string[]; ended: Promise<unknown> }

/**
 * For names that tenants have chosen and that are called. Calls for the same name share one lookup, also after
 * the deadline, until the name server has been given up: however often a slow name is called, it is asked for
 * once. A family that fails or is late does not matter if the other one has addresses, because only the
 * addresses that are returned are connected to.
 */
export function createTenantResolver({
  resolver = new Resolver({ timeout: 500, tries: 4, maxTimeout: 1000 }),
  deadlineMs = 2000,
}: TenantResolverOptions = {}): Resolve {
  const lookups = new Map<string, Lookup>()

  function startLookup(host: string): Lookup {
    const found: string[] = []
    const collect = async (family: Promise<string[]>) => void found.push(...(await family))
    const families = [collect(resolver.resolve4(host)), collect(resolver.resolve6(host))]
    const ended = Promise.allSettled(families).finally(() => lookups.delete(host))
    const started = { found, ended }
    lookups.set(host, started)
    return started
  }

  return async (host) => {
    const { found, ended } = lookups.get(host) ?? startLookup(host)
    const isInTime = await endsWithin(ended, deadlineMs)
    if (found.length > 0) return found.map((address) => ({ address }))
    throw new EgressFailed(
      isInTime
        ? 'The host name could not be resolved.'
        : 'The host name could not be resolved in time.',
    )
  }
}

async function endsWithin(work: Promise<unknown>, timeMs: number): Promise<boolean> {
  const late = Promise.withResolvers<boolean>()
  const timer = setTimeout(() => late.resolve(false), timeMs)
  try {
    return await Promise.race([work.then(() => true), late.promise])
  } finally {
    clearTimeout(timer)
  }
}
