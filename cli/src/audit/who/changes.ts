import { z } from 'zod'

import { isObject } from '../canonical.ts'

/** One change of a policy, as its audit event tells it. */
export type Change = {
  eventId: string
  at: string
  actor: string
  /** `admin_key`, `member` and so on; null in events of earlier releases. */
  actorType: string | null
  /** Null where the actor is no member, or the payload was erased. */
  person: Person | null
  /** `updated`, and with `restoredVersion` the version that was copied into the draft. */
  action: string
  revision: number | null
  version: number | null
  restoredVersion: number | null
  policyName: string | null
  /** What differs; null: the payload of the event was erased. */
  members: readonly ChangedMember[] | null
}

/** A member, as the payload of the event names one. */
type Person = { name: string; email: string }

export type ChangedMember = { name: string; before: unknown; after: unknown }

const number = z.number().nullish().catch(null)

const RevisionEvent = z.object({
  id: z.string(),
  created_at: z.string(),
  actor: z.string(),
  actor_type: z.string().nullish().catch(null),
  action: z.string(),
  revision: number,
  version: number,
  restored_version: number,
  policy_name: z.string().nullish().catch(null),
  payload: z.unknown(),
})

const Person = z.object({ name: z.string(), email: z.string() })

/** Undefined for what is not the event of a change. */
export function changeFrom(value: unknown): Change | undefined {
  const parsed = RevisionEvent.safeParse(value)
  if (!parsed.success) return undefined
  const event = parsed.data
  return {
    eventId: event.id,
    at: event.created_at,
    actor: event.actor,
    actorType: event.actor_type ?? null,
    person: personIn(event.payload),
    action: event.action,
    revision: event.revision ?? null,
    version: event.version ?? null,
    restoredVersion: event.restored_version ?? null,
    policyName: event.policy_name ?? null,
    members: changedMembers(event.payload),
  }
}

function personIn(payload: unknown): Person | null {
  const { data = null } = Person.safeParse(isObject(payload) ? payload['actor'] : null)
  return data
}

/** They change with every change, or only repeat what others say. */
const unimportant =
  /^(id|object|revision|current_version|has_unpublished_changes|draft\.base_version|\w+_at|published(\..*)?)$/

function changedMembers(payload: unknown): ChangedMember[] | null {
  if (!isObject(payload)) return null
  const before = flattened(payload['before'])
  const after = flattened(payload['after'])
  // A policy that was deleted has nothing after; its last state is the event before.
  if (after.size === 0) return []
  const names = [...new Set([...before.keys(), ...after.keys()])]
  return names
    .filter((name) => !unimportant.test(name))
    .map((name) => ({ name, before: before.get(name), after: after.get(name) }))
    .filter((member) => JSON.stringify(member.before) !== JSON.stringify(member.after))
}

/** Members by their dotted names: `draft.rule`. Lists are compared as a whole. */
function flattened(value: unknown, prefix = ''): Map<string, unknown> {
  if (!isObject(value)) return new Map()
  return new Map(
    Object.entries(value).flatMap(([name, inside]): [string, unknown][] =>
      isObject(inside)
        ? [...flattened(inside, `${prefix}${name}.`)]
        : [[`${prefix}${name}`, inside]],
    ),
  )
}
