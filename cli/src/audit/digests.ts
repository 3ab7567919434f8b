import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { relative, sep } from 'node:path'
import { pipeline } from 'node:stream/promises'

import { isObject } from './canonical.ts'
import { Fault } from './fault.ts'

type Named = { key: string; sha256: string }
type Digest = {
  path: string
  from: string
  organization: string
  objects: Named[]
  previous: Named | null
}

/** Checks that each object of each digest is there and unchanged, and that no digest between two others is missing. */
export async function checkDigests(folder: string, paths: readonly string[]): Promise<number> {
  const digests = await Promise.all(paths.map(readDigest))
  const followed = new Map<string, string>()
  const oldest = oldestOf(digests)
  for (const digest of digests) {
    for (const object of digest.objects) await checkObject(folder, digest, object)
    if (!digest.previous) continue
    // Whoever keeps digests for a limited time no longer has the one before the oldest.
    const path = await checkObject(folder, digest, digest.previous, oldest.has(digest))
    if (path === undefined) continue
    const other = followed.get(path)
    if (other !== undefined) throw faultOf(digest, `follows the same digest as ${other}`)
    followed.set(path, digest.path)
  }
  return digests.length
}

function oldestOf(digests: readonly Digest[]): Set<Digest> {
  const oldest = new Map<string, Digest>()
  for (const digest of digests) {
    const known = oldest.get(digest.organization)
    if (!known || digest.from < known.from) oldest.set(digest.organization, digest)
  }
  return new Set(oldest.values())
}

async function readDigest(path: string): Promise<Digest> {
  const parsed = parseJson(await readFile(path, 'utf8'))
  const { objects, previous, from, org_id: organization } = isObject(parsed) ? parsed : {}
  const isDigest =
    Array.isArray(objects) &&
    objects.every(isNamed) &&
    (previous === null || isNamed(previous)) &&
    typeof from === 'string'
  if (!isDigest)
    throw new Fault({ kind: 'digest', seq: null }, { file: path, line: 0 }, 'cannot be read')
  return {
    path,
    from,
    organization: typeof organization === 'string' ? organization : '',
    objects,
    previous,
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

const isNamed = (value: unknown): value is Named =>
  isObject(value) && typeof value['key'] === 'string' && typeof value['sha256'] === 'string'

/** Returns the file of an object, undefined where it may be absent and is. */
async function checkObject(
  folder: string,
  digest: Digest,
  { key, sha256 }: Named,
  isOptional = false,
) {
  for (const path of candidates(folder, digest, key)) {
    const found = await hashFile(path)
    if (found === undefined) continue
    if (found === sha256) return path
    throw faultOf(digest, `names ${key}, but the file has been changed: its SHA-256 is another`)
  }
  if (isOptional) return undefined
  throw faultOf(digest, `names ${key}, which is missing`)
}

/** Keys begin at the bucket, the folder may be any part of it, or hold it: the digest's own place shows where it is. */
function candidates(folder: string, { path }: Digest, key: string): string[] {
  const own = relative(folder, path).split(sep)
  const base = own.slice(0, own.lastIndexOf('digests'))
  const names = key.split('/')
  // A key must not lead out of the folder.
  if (names.includes('..')) return []
  const inside = names.map((_, index) => names.slice(index))
  return inside.flatMap((rest) => [
    [folder, ...base, ...rest].join(sep),
    ...(base.length > 0 ? [[folder, ...rest].join(sep)] : []),
  ])
}

async function hashFile(path: string): Promise<string | undefined> {
  const digest = createHash('sha256')
  try {
    await pipeline(createReadStream(path), digest)
  } catch (error) {
    if (
      error instanceof Error &&
      'code' in error &&
      ['ENOENT', 'EISDIR', 'ENOTDIR'].includes(String(error.code))
    ) {
      return undefined
    }
    throw error
  }
  return digest.digest('hex')
}

const faultOf = ({ path }: Digest, what: string) =>
  new Fault({ kind: 'digest', seq: null }, { file: path, line: 0 }, what)
