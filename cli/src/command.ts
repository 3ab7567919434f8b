import type { Endpoint } from '@gatehouse/contract/endpoint'

import { type Flag, kebabCase } from './flags.ts'

/** What a person types, and the endpoint it calls. */
export type Command = { name: string; summary: string; endpoint: Endpoint }

/** Every endpoint that asks who is calling is a command; the others are for machines. */
export function commandsOf(endpoints: readonly Endpoint[]): Command[] {
  return endpoints
    .filter(({ permission }) => permission !== null)
    .map((endpoint) => ({
      name: kebabCase(endpoint.id),
      summary: endpoint.summary,
      endpoint,
    }))
}

/** The flags of a path in the order of the path: they may be given without their names. */
export function pathFlags({ path }: Endpoint, flags: readonly Flag[]): Flag[] {
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name)
  return inPath.flatMap((name) =>
    flags.filter(({ part, member }) => part === 'params' && member === name),
  )
}

/** A page of a list can say where the next one starts. */
export const isPaged = ({ query }: Endpoint) => query !== undefined && 'after' in query.shape
