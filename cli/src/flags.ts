import type { Endpoint } from '@gatehouse/contract/endpoint'

import { type JsonSchema, membersOf } from './json-schema.ts'
import { type Shape, shapeOf } from './member.ts'

export type Part = 'params' | 'query' | 'body'

/** A member of the endpoint's input and the flag that sets it. */
export type Flag = {
  name: string
  part: Part
  member: string
  shape: Shape
  isRequired: boolean
  /** What it is for, and what the service takes when it is absent. */
  description: string
}

/** Flags that mean the same in every command. A member of that name gets its part in front. */
export const generalFlags = {
  help: { type: 'boolean', short: 'h' },
  json: { type: 'boolean' },
  all: { type: 'boolean' },
  url: { type: 'string' },
  'key-file': { type: 'string' },
  'idempotency-key': { type: 'string' },
  body: { type: 'string' },
} as const

export const kebabCase = (name: string) =>
  name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1-$2')
    .replaceAll('_', '-')
    .toLowerCase()

/** One flag per member of the path, the query and the body. */
export function flagsOf(endpoint: Endpoint): Flag[] {
  const taken = new Set<string>(Object.keys(generalFlags))
  const found = (['params', 'query', 'body'] as const).flatMap((part) => membersIn(endpoint, part))
  return found.map((flag) => {
    const name = taken.has(flag.name) ? `${flag.part}-${flag.name}` : flag.name
    taken.add(name)
    return { ...flag, name }
  })
}

function membersIn(endpoint: Endpoint, part: Part): Flag[] {
  const schema = endpoint[part]
  if (!schema) return []
  // A query number is text on the wire; only the output side says that it is a number.
  const { schemas } = membersOf(schema, part === 'body' ? 'input' : 'output')
  const { required } = membersOf(schema, 'input')
  return Object.entries(schemas).map(([member, described]) => ({
    name: kebabCase(member),
    part,
    member,
    shape: shapeOf(described),
    isRequired: required.includes(member),
    description: descriptionOf(described),
  }))
}

function descriptionOf({ description, default: absent }: JsonSchema): string {
  const parts = [description, absent === undefined ? '' : `Default: ${JSON.stringify(absent)}.`]
  return parts.filter(Boolean).join(' ')
}
