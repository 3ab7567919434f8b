import type { Endpoint } from '@gatehouse/contract/endpoint'

import { kebabCase } from './command.ts'
import { type JsonSchema, membersOf } from './json-schema.ts'
import { type Shape, shapeOf } from './member.ts'

export type Part = 'params' | 'query' | 'headers' | 'body'

/** A member of the endpoint's input and the flag that sets it. */
export type Flag = {
  name: string
  part: Part
  member: string
  shape: Shape
  isRequired: boolean
  /** Its meaning and its default. */
  description: string
}

/** Flags of every command. A member of the same name gets a prefix: `--body-url`. */
export const generalFlags = {
  help: { type: 'boolean', short: 'h' },
  json: { type: 'boolean' },
  all: { type: 'boolean' },
  url: { type: 'string' },
  'key-file': { type: 'string' },
  'idempotency-key': { type: 'string' },
  body: { type: 'string' },
} as const

/** One flag per member of the path, the query, the headers and the body. */
export function flagsOf(endpoint: Endpoint): Flag[] {
  const taken = new Set<string>(Object.keys(generalFlags))
  const found = (['params', 'query', 'headers', 'body'] as const).flatMap((part) =>
    membersIn(endpoint, part),
  )
  return found.map((flag) => {
    const name = taken.has(flag.name) ? `${flag.part}-${flag.name}` : flag.name
    taken.add(name)
    return { ...flag, name }
  })
}

function membersIn(endpoint: Endpoint, part: Part): Flag[] {
  const schema = endpoint[part]
  if (!schema) return []
  // A number in a query is text on the wire; only the output schema has its type.
  const { schemas } = membersOf(schema, part === 'body' ? 'input' : 'output')
  const { required } = membersOf(schema, 'input')
  return Object.entries(schemas).map(([member, described]) => ({
    name: kebabCase(part === 'headers' ? member.replace(/^X-Gatehouse-/, '') : member),
    part,
    member,
    shape: shapeOf(described),
    isRequired: required.includes(member),
    description: descriptionOf(described),
  }))
}

function descriptionOf({ description, default: defaultValue }: JsonSchema): string {
  const parts = [
    description,
    defaultValue === undefined ? '' : `Default: ${JSON.stringify(defaultValue)}.`,
  ]
  return parts.filter(Boolean).join(' ')
}

/** The flags of a path in the order of the path: they may be given without their names. */
export function pathFlags({ path }: Endpoint, flags: readonly Flag[]): Flag[] {
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name)
  return inPath.flatMap((name) =>
    flags.filter(({ part, member }) => part === 'params' && member === name),
  )
}

/** Whether the operation answers with a list in pages. */
export const isPaged = ({ query }: Endpoint) => query !== undefined && 'after' in query.shape
