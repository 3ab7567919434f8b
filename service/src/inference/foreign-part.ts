import type { Json } from './answer.ts'
import type { ForeignPart, TurnMessage } from './turn.ts'

/** Something that has no place in a turn, by its JSON text. */
export const foreignPart = (value: unknown): ForeignPart => ({
  type: 'foreign',
  text: JSON.stringify(value),
})

/** The members of an object that nobody reads and that say something, as one part or none. */
export function foreignMembers(object: Json, known: ReadonlySet<string>): ForeignPart[] {
  const unread = Object.entries(object).filter(([name, value]) => !known.has(name) && says(value))
  return unread.length === 0 ? [] : [foreignPart(Object.fromEntries(unread))]
}

/** Numbers and switches are settings; only texts, and what holds others, can tell a model something. */
function says(value: unknown): boolean {
  if (typeof value === 'string') return value !== ''
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0
}

/**
 * What is said about the whole call, such as tools that a provider runs, belongs to no message: it stands at
 * the end of the first one, because every request has one and a turn has no other place for it.
 */
export function addForeign(
  messages: readonly TurnMessage[],
  foreign: readonly ForeignPart[],
): TurnMessage[] {
  if (foreign.length === 0) return [...messages]
  const [{ role, parts } = { role: 'user' as const, parts: [] }, ...others] = messages
  return [{ role, parts: [...parts, ...foreign] }, ...others]
}
