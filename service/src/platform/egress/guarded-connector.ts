import { isIP, type LookupFunction } from 'node:net'
import type { SecureContext } from 'node:tls'
import { callbackify } from 'node:util'

import { buildConnector } from 'undici'

import { EgressBlocked, isPrivateTarget } from '#platform/egress-target.ts'

import { EgressFailed } from './egress-failed.ts'
import type { Resolve } from './find-addresses.ts'

/** How many addresses of a name are tried at most; all of them are checked. */
const triedMax = 32

export type Guard = {
  /** The operator's `host:port` entries as `readPrivateTarget` spells them. */
  privateTargets: readonly string[]
  resolvePublic: Resolve
  resolveListed: Resolve
  isPublic: (address: string) => boolean
  /** Covers resolving, connecting and TLS. */
  connectTimeoutMs: number
}

export type ConnectionTls = { secureContext: SecureContext; rejectUnauthorized: boolean }

/**
 * Connects to one origin, at public addresses only. A name is resolved once for each connection: all its
 * addresses are checked, and the same addresses go to the socket. IP literals never reach the lookup hook, so
 * they are refused before; the socket's actual remote address is checked again. The signal ends connections
 * and also attempts, which the HTTP client would let run until they time out.
 */
export function guardedConnector(
  url: URL,
  guard: Guard,
  tls: ConnectionTls,
  signal: AbortSignal,
): buildConnector.connector {
  const { resolvePublic, resolveListed, isPublic } = guard
  const isListed = isPrivateTarget(url, guard.privateTargets)
  const options = {
    ...tls,
    timeout: guard.connectTimeoutMs,
    allowH2: false,
    signal,
    lookup: isListed
      ? checkedLookup(resolveListed, () => true)
      : checkedLookup(resolvePublic, isPublic),
  }
  const connect = buildConnector(options)
  if (isListed) return connect

  return (target, done) => {
    if (isIP(target.hostname) !== 0) return done(notPublic(), null)
    return connect(target, (error, socket) => {
      if (error) return done(error, null)
      if (isPublic(socket.remoteAddress ?? '')) return done(null, socket)
      socket.destroy()
      return done(notPublic(), null)
    })
  }
}

const notPublic = () =>
  new EgressBlocked('The host name leads to an address outside the public internet.')

function checkedLookup(resolve: Resolve, isAllowed: (address: string) => boolean): LookupFunction {
  async function resolveChecked(host: string) {
    const answers = await resolve(host)
    // Copied, so that the checked addresses are the ones that are used.
    const addresses = answers.map(({ address }) => ({ address, family: isIP(address) }))
    const [first] = addresses
    if (!first) throw new EgressFailed('The host name could not be resolved.')
    if (!addresses.every(({ address }) => isAllowed(address))) throw notPublic()
    return { first, addresses: addresses.slice(0, triedMax) }
  }
  const resolveThen = callbackify(resolveChecked)
  return (host, { all }, done) =>
    resolveThen(host, (error, resolved) => {
      if (error) return done(error, [])
      const { first, addresses } = resolved
      return all ? done(null, addresses) : done(null, first.address, first.family)
    })
}
