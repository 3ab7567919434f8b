import { createHmac, hash, type KeyObject } from 'node:crypto'
import { crc32 } from 'node:zlib'

import { BoundedMap } from '#platform/bounded-map.ts'
import { deriveKey, type Keyring } from '#platform/secrets.ts'

/**
 * A key is its prefix, 43 base62 characters of 256 random bits, and 6 base62 characters of the CRC32
 * of everything before them. The checksum rejects typos and noise before anything is hashed or queried.
 */
export type KeyPrefix =
  | 'gate_adm_'
  | 'gate_prj_'
  | 'gate_ses_'
  /** Of what leads to a session: the operator's link, an invitation, and the code of a device. */
  | 'gate_lnk_'
  | 'gate_inv_'
  | 'gate_dev_'

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const randomLength = 43
const checksumLength = 6
const shape = /^gate_(adm|prj|ses|lnk|inv|dev)_[0-9A-Za-z]{49}$/

export function formatKey(prefix: KeyPrefix, random: Buffer): string {
  const start = prefix + base62(BigInt(`0x${random.toString('hex')}`), randomLength)
  return start + checksum(start)
}

export function hasKeyShape(presented: string): boolean {
  if (!shape.test(presented)) return false
  const start = presented.slice(0, -checksumLength)
  return presented.slice(-checksumLength) === checksum(start)
}

/** The parts of a key that may be stored and shown: its first 8 random characters and its last 4. */
export function partsToKeep(key: string): { hint8: string; last4: string } {
  return { hint8: key.slice(9, 17), last4: key.slice(-4) }
}

/** `gate_adm_Zz...RU98` */
export function redact(prefix: KeyPrefix, { hint8, last4 }: { hint8: string; last4: string }) {
  return `${prefix}${hint8.slice(0, 2)}...${last4}`
}

/** With numbers, not with `base62`: it is computed for every call. */
function checksum(start: string): string {
  let text = ''
  let rest = crc32(start)
  for (let digit = 0; digit < checksumLength; digit++) {
    text = `${alphabet[rest % 62]}${text}`
    rest = Math.floor(rest / 62)
  }
  return text
}

function base62(value: bigint, length: number): string {
  let text = ''
  for (let rest = value; rest > 0n; rest /= 62n) text = `${alphabet[Number(rest % 62n)]}${text}`
  return text.padStart(length, '0')
}

export type KeyHash = { version: number; hash: Buffer }

/** Hashes a key with the pepper of every configured master key, the current one first. */
export type HashKey = (key: string) => readonly [KeyHash, ...KeyHash[]]

/** How many keys have their hashes kept: one with a pepper takes several times as long as one without. */
const knownMax = 10_000

export function createKeyHasher(keyring: Keyring): HashKey {
  const hasher = (master: Keyring[0]) => {
    // A cached KeyObject costs 2.5 µs per hash, a Buffer 14 to 26.
    const pepper = deriveKey(master, 'key-pepper')
    return (key: string) => ({ version: master.version, hash: hmac(pepper, key) })
  }
  const [current, ...older] = keyring
  const first = hasher(current)
  const rest = older.map(hasher)
  const known = new BoundedMap<string, readonly [KeyHash, ...KeyHash[]]>(knownMax)
  return (key) => {
    // By a hash, so that no key stays in memory. It needs no pepper there: a key has 256 random bits.
    const name = hash('sha256', key, 'base64')
    const found = known.get(name)
    if (found) return found
    const hashes = [first(key), ...rest.map((hashWith) => hashWith(key))] as const
    known.set(name, hashes)
    return hashes
  }
}

const hmac = (pepper: KeyObject, key: string) => createHmac('sha256', pepper).update(key).digest()
