import type { Json } from '#formats/answer.ts'
import { isObject } from '#formats/json-values.ts'
import { isRawNumber } from '#platform/exact-json.ts'

/** Finds the texts of a value that no part of a turn has. `owner` is the object whose member it is. */
export type MemberReader = (value: unknown, add: (text: string) => void, owner: Json) => void

/** A turn has it, or it does not reach an upstream. */
export const seen: MemberReader = () => undefined

/** Every string in it, and every name of a member: people write there what they like. */
export const free: MemberReader = (value, add) => {
  // Most values are no objects, and need no list.
  if (typeof value === 'string') return add(value)
  if (typeof value !== 'object' || value === null) return
  // Not by recursion: a request may be nested more deeply than the stack allows.
  const rest = [value]
  while (rest.length > 0) {
    const next = rest.pop()
    if (typeof next === 'string') add(next)
    if (typeof next !== 'object' || next === null || isRawNumber(next)) continue
    if (!Array.isArray(next)) for (const name in next) add(name)
    for (const inner of Object.values(next).reverse()) rest.push(inner)
  }
}

/** A text that a turn has. Anything but a text was passed over when the turn was read. */
export const said: MemberReader = (value, add, owner) => {
  if (typeof value !== 'string') free(value, add, owner)
}

/** Ids, and values of enumerations that vendors extend. No sentence has this form. */
const identifier = /^[\w.:/|+=~#-]{0,160}$/

/** An id, or a value of an enumeration. Whatever has another form is text. */
export const setting: MemberReader = (value, add, owner) => {
  // Every block of a conversation has some, so this must be cheap.
  if (typeof value === 'string' && identifier.test(value)) return
  free(value, (text) => (identifier.test(text) ? undefined : add(text)), owner)
}

/** UUIDs and hashes. Clients send some with every call, and their digits could be taken for numbers that mean something. */
const randomId = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|[\da-f]{32,}/gi

/** What clients say about a call. */
export const description: MemberReader = (value, add, owner) =>
  free(value, (text) => add(text.replaceAll(randomId, '')), owner)

/** Who calls: an id, or several in the words of a client. */
export const identity: MemberReader = (value, add, owner) =>
  setting(value, (text) => add(text.replaceAll(randomId, '')), owner)

const encoded = /^[\w+/=.:@~-]*$/

/** A signature, or encrypted data. Whatever has another form is text. */
export const sealed: MemberReader = (value, add, owner) => {
  if (typeof value !== 'string' || !encoded.test(value)) free(value, add, owner)
}

/** An object, by its members. `unknown` reads the others, and a value that is no object. */
export function objectWith(
  members: Readonly<Record<string, MemberReader>>,
  unknown: MemberReader = free,
): MemberReader {
  const readings = new Map(Object.entries(members))
  return (value, add, owner) => {
    if (!isObject(value)) return unknown(value, add, owner)
    for (const name in value) {
      const reading = readings.get(name)
      if (reading) reading(value[name], add, value)
      else if (hasText(name, value[name])) unknown({ [name]: value[name] }, add, value)
    }
  }
}

/** Most unknown members are a name and a switch, and say nothing. */
const hasText = (name: string, value: unknown) =>
  typeof value === 'string' || isObject(value) || Array.isArray(value) || !identifier.test(name)

/** An object of settings. */
export const settingsOf = (...names: string[]): MemberReader =>
  objectWith(Object.fromEntries(names.map((name) => [name, setting])))

export const eachOf =
  (item: MemberReader): MemberReader =>
  (value, add, owner) => {
    if (!Array.isArray(value)) return free(value, add, owner)
    for (const each of value) item(each, add, owner)
  }

/** A text that a turn has, or a list. */
export function textOrListOf(item: MemberReader): MemberReader {
  const list = eachOf(item)
  return (value, add, owner) => (typeof value === 'string' ? undefined : list(value, add, owner))
}

/** An object by its `type`, which says nothing more. One of another type is read whole, by the reader of the turn, or refused. */
export function byType(
  readings: Readonly<Record<string, MemberReader>>,
  typeOf = (value: Json): unknown => value['type'],
): MemberReader {
  const known = new Map<unknown, MemberReader>(Object.entries(readings))
  return (value, add, owner) => {
    if (!isObject(value)) return free(value, add, owner)
    return known.get(typeOf(value))?.(value, add, owner)
  }
}

/** The texts of a request that stand outside of its conversation and of its tools, each once. */
export function readOtherTexts(request: Json, reading: MemberReader): string[] {
  const found = new Set<string>()
  reading(request, (text) => void (text !== '' && found.add(text)), request)
  return [...found]
}

export const cacheControl = settingsOf('type', 'ttl', 'scope')
