import type { Json } from './answer.ts'
import type { ForeignPart, TurnMessage } from './turn.ts'

/** A value that a turn has no member for, as its JSON text. */
export const foreignPart = (value: unknown): ForeignPart => ({
  type: 'foreign',
  text: JSON.stringify(value),
})

/** The unknown members of an object that hold text, as one part or none. */
export function foreignMembers(object: Json, known: ReadonlySet<string>): ForeignPart[] {
  // Called for every part of a conversation: most have none, and get by without copies.
  const names = Object.keys(object).filter(
    (name) => !known.has(name) && (hasText(object[name]) || !identifier.test(name)),
  )
  if (names.length === 0) return []
  return [foreignPart(Object.fromEntries(names.map((name) => [name, object[name]])))]
}

/** A name that no sentence fits in. */
const identifier = /^[\w.:/-]{0,128}$/

/** A model can read only texts; numbers and booleans are settings. */
function hasText(value: unknown): boolean {
  if (typeof value === 'string') return value !== ''
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0
}

/**
 * Adds what belongs to the whole call, such as tools that a provider runs, to the end of the first message:
 * every request has one, and a turn has no other place for it.
 */
export function addForeign(
  messages: readonly TurnMessage[],
  foreign: readonly ForeignPart[],
): TurnMessage[] {
  if (foreign.length === 0) return [...messages]
  const [{ role, parts } = { role: 'user' as const, parts: [] }, ...others] = messages
  return [{ role, parts: [...parts, ...foreign] }, ...others]
}
