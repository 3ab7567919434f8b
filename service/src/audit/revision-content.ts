import { hash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'

import { writeCanonical } from './canonical-json.ts'

/** An event cannot be removed before its retention ends, and every sink gets it. */
export const revisionContentMaxBytes = 64 * 1024
/** What is longer is replaced by its hash when nothing else helps. */
const hashedFromBytes = 256

/** A resource as the API shows it, so without secrets. */
export type Resource = { readonly id: string; readonly object: string }
type Members = Readonly<Record<string, unknown>>

type Change = {
  before: Resource | null
  after: Resource | null
  /** The person who has changed it. */
  actor?: object
}

/**
 * What the payload of a revision event says: the resource before and after. If that is too much, only the members that have changed,
 * and if those are too much, hashes of the long ones (docs/specification/audit-events.md#large-changes). `historyId` is where what
 * was saved is kept.
 */
export function revisionContent(change: Change, historyId: string | undefined): object {
  const { before, after, ...by } = change
  if (fits(change)) return { before, after, ...by }
  // As the event would have shown it: undefined members are gone, and dates are texts.
  const [one, other] = [asJson(before), asJson(after)]
  const [changedBefore, changedAfter] = differingMembers(one ?? {}, other ?? {})
  const changed = {
    before: one && named(one, changedBefore),
    after: other && named(other, changedAfter),
    reduced: 'changed_members',
    ...by,
  }
  if (fits(changed)) return changed
  return {
    before: one && named(one, hashLong(one, Object.keys(changedBefore))),
    after: other && named(other, hashLong(other, Object.keys(changedAfter))),
    reduced: 'hashes',
    ...(historyId !== undefined && { history_id: historyId }),
    ...by,
  }
}

const fits = (content: object) =>
  Buffer.byteLength(JSON.stringify(content)) <= revisionContentMaxBytes

const asJson = (resource: Resource | null) => JSON.parse(JSON.stringify(resource)) as Members | null

/** The resource stays recognisable, whatever of it has changed. */
const named = ({ id, object }: Members, members: Members) => ({ id, object, ...members })

const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The members in which two objects differ. Objects in both are compared in turn, and lists as a whole. */
function differingMembers(one: Members, other: Members): [Members, Members] {
  const only: [Record<string, unknown>, Record<string, unknown>] = [{}, {}]
  for (const name of new Set([...Object.keys(one), ...Object.keys(other)])) {
    const values = [one[name], other[name]] as const
    if (isDeepStrictEqual(...values)) continue
    const [first, second] = values
    const shown = isObject(first) && isObject(second) ? differingMembers(first, second) : values
    if (name in one) only[0][name] = shown[0]
    if (name in other) only[1][name] = shown[1]
  }
  return only
}

/** Long members as the hash of all of them, so that it can be compared with what the history has. */
function hashLong(resource: Members, names: readonly string[]): Members {
  const shown = names.map((name) => {
    const text = writeCanonical(resource[name] as never)
    const bytes = Buffer.byteLength(text)
    const value = bytes > hashedFromBytes ? { sha256: hash('sha256', text), bytes } : resource[name]
    return [name, value] as const
  })
  return Object.fromEntries(shown)
}
