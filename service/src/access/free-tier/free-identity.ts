import { createHmac, type KeyObject } from 'node:crypto'
import { isIP, isIPv4 } from 'node:net'

import { addressPrefix } from '#platform/client-address.ts'

/** Identifies a caller without a credential by hashes of its address. The address never leaves this file. */
export type FreeIdentity = {
  /** One hash for each master key, the current one first. */
  readonly identities: readonly [Buffer, ...Buffer[]]
  /** The larger networks around an IPv6 address; IPv4 has none. */
  readonly networks: readonly FreeNetwork[]
}

type FreeNetwork = { readonly hash: Buffer; readonly prefixLength: 48 | 56 }

export type IdentityKeys = readonly [KeyObject, ...KeyObject[]]

/** Derives the identity from an address; null when the text is not an IP address. */
export function createFreeIdentity([current, ...older]: IdentityKeys) {
  return (address: string): FreeIdentity | null => {
    if (isIP(address) === 0) return null
    const prefix = addressPrefix(address)
    const networks = isIPv4(prefix) ? [] : networksAround(prefix)
    if (!networks) return null
    return {
      identities: [hmac(current, prefix), ...older.map((key) => hmac(key, prefix))],
      networks: networks.map(({ text, prefixLength }) => ({
        hash: hmac(current, text),
        prefixLength,
      })),
    }
  }
}

const slash64 = /^([0-9a-f]{1,4}):([0-9a-f]{1,4}):([0-9a-f]{1,4}):([0-9a-f]{1,4})::\/64$/

function networksAround(prefix: string) {
  const [first, second, third, fourth] = slash64.exec(prefix)?.slice(1) ?? []
  if (fourth === undefined) return null
  const upperByte = (Number.parseInt(fourth, 16) & 0xff00).toString(16)
  return [
    { text: `${first}:${second}:${third}::/48`, prefixLength: 48 },
    { text: `${first}:${second}:${third}:${upperByte}::/56`, prefixLength: 56 },
  ] as const
}

const hmac = (key: KeyObject, text: string) => createHmac('sha256', key).update(text).digest()
