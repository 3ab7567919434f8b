import { isObject } from '#formats/json-values.ts'

/** A string in JSON: its path, where items of lists are `[]`, and the JSON with another string in its place. */
type StringPlace = { path: string; replaceWith(text: string): unknown }

/** For tests: every string in a value. */
export function stringPlacesIn(value: unknown, path = ''): StringPlace[] {
  if (typeof value === 'string') return [{ path, replaceWith: (text) => text }]
  if (Array.isArray(value)) {
    return value.flatMap((item: unknown, position) =>
      stringPlacesIn(item, `${path}[]`).map((place) => ({
        path: place.path,
        replaceWith: (text: string) => value.with(position, place.replaceWith(text)) as unknown,
      })),
    )
  }
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([name, inner]) =>
    stringPlacesIn(inner, path === '' ? name : `${path}.${name}`).map((place) => ({
      path: place.path,
      replaceWith: (text: string) => ({ ...value, [name]: place.replaceWith(text) }),
    })),
  )
}
