export type Json = null | boolean | number | string | readonly Json[] | JsonObject
export type JsonObject = { readonly [name: string]: Json }

/** JSON as RFC 8785 writes it: members sorted by UTF-16 code units, no white space, numbers and texts as ECMAScript prints them. */
export function writeCanonical(value: Json): string {
  if (isList(value)) return `[${value.map((item) => writeCanonical(item)).join(',')}]`
  if (isObject(value)) return joinMembers(memberTexts(value))
  if (typeof value === 'number' && !Number.isFinite(value)) throw new Error('a number is too large')
  if (typeof value === 'string' && !value.isWellFormed()) {
    throw new Error('a text contains half a character')
  }
  return JSON.stringify(value)
}

/** The members of an object as canonical JSON, in their order. `written` has the texts of members that are written otherwise. */
export function memberTexts(
  object: JsonObject,
  written: Readonly<Record<string, string>> = {},
): [name: string, text: string][] {
  const names = Object.keys(object).toSorted(byCodeUnits)
  return names.map((name) => [
    name,
    `${writeCanonical(name)}:${written[name] ?? writeCanonical(object[name] ?? null)}`,
  ])
}

const byCodeUnits = (one: string, other: string) => (one < other ? -1 : 1)

export const joinMembers = (members: readonly (readonly [name: string, text: string])[]) =>
  `{${members.map(([, text]) => text).join(',')}}`

const isList = (value: Json): value is readonly Json[] => Array.isArray(value)

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
