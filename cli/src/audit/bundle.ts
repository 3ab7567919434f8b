import { isObject, type JsonObject, writeCanonical } from './canonical.ts'
import { frontierOf } from './checkpoint.ts'
import { isSize } from './encoding.ts'
import { BadLine, Fault } from './fault.ts'
import { createKey, type Key, type Keys, publicKeyFrom } from './keys.ts'

/** The first line of a bundle: records (from, to] follow. */
export type Header = {
  organizationId: string
  from: number
  to: number
  /** The roots of the complete subtrees at `from`. */
  frontier: readonly Buffer[]
  keys: Keys
}

const bundleFormat = 'gatehouse-audit-bundle/1'

const headerMembers = ['format', 'from', 'frontier', 'keys', 'org_id', 'to']

/** Reads the first line. Who gives keys trusts only those: a bundle must have the same. */
export function readHeader(text: string, object: JsonObject): Header {
  const { format, from, to, org_id: organizationId } = object
  if (format !== bundleFormat) {
    throw new BadLine(
      `is not that of a bundle (${bundleFormat}). For the files of a sink, name their folder`,
    )
  }
  if (writeCanonical(object) !== text) throw new BadLine('is not canonical JSON')
  if (Object.keys(object).join() !== headerMembers.join())
    throw new BadLine('has other members than a bundle')
  if (typeof organizationId !== 'string' || organizationId === '')
    throw new BadLine('has no org_id')
  if (!(from === 0 || isSize(from)) || !isSize(to) || from >= to) {
    throw new BadLine('has no from and to that a bundle can have')
  }
  const frontier = frontierOf(object['frontier'], from)
  if (!frontier) throw new BadLine(`has no frontier of a tree of size ${from}`)
  return { organizationId, from, to, frontier, keys: keysFrom(object['keys']) }
}

function keysFrom(value: unknown): Keys {
  const keys = Array.isArray(value) ? value.map(keyFrom) : []
  const isSorted = keys.every(({ id }, index) => index === 0 || id > (keys[index - 1]?.id ?? 0))
  if (keys.length === 0 || !isSorted) throw new BadLine('has no list of keys that is sorted by id')
  return new Map(keys.map((key) => [key.id, key]))
}

function keyFrom(value: unknown): Key {
  const { id, public_key, ...others } = isObject(value) ? value : {}
  const publicKey = publicKeyFrom(public_key)
  if (!isSize(id) || !publicKey || Object.keys(others).length > 0) {
    throw new BadLine('has a key that cannot be read')
  }
  return createKey(id, publicKey)
}

/** Whoever made a bundle wrote its keys, too: they count only if they are the trusted ones. */
export function checkKeys(keys: Keys, trusted: Keys) {
  for (const { id, publicKey } of keys.values()) {
    const known = trusted.get(id)
    if (!known) throw new BadLine(`has a key ${id}, which is not among the trusted keys`)
    if (!known.publicKey.equals(publicKey))
      throw new BadLine(`has another key ${id} than the trusted one`)
  }
}

export function writeHeader({ organizationId, from, to, frontier, keys }: Header): string {
  return writeCanonical({
    format: bundleFormat,
    frontier: frontier.map((root) => root.toString('hex')),
    from,
    keys: [...keys.values()]
      .toSorted((one, other) => one.id - other.id)
      .map(({ id, publicKey }) => ({ id, public_key: publicKey.toString('base64') })),
    org_id: organizationId,
    to,
  })
}

export const headerFault = (file: string, what: string) =>
  new Fault({ kind: 'header', seq: null }, { file, line: 1 }, what)
