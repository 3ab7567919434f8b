import { adminEndpoint, type Endpoint } from '@gatehouse/contract/endpoint'
import { endpoints } from '@gatehouse/contract/endpoints'
import { integerInQuery } from '@gatehouse/contract/list'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { commands } from './command.ts'
import { flagsOf } from './flags.ts'

const endpoint = adminEndpoint({
  id: 'tryEverything',
  summary: 'Try everything',
  method: 'POST',
  path: '/things/:thing_id',
  permission: 'projects.write',
  params: z.object({ thing_id: z.string() }),
  query: z.object({ limit: integerInQuery(1, 100).default(20).describe('Page size.') }),
  body: z.strictObject({
    url: z.string().max(2000),
    thing_id: z.string(),
    enabled: z.boolean(),
    order: z.enum(['asc', 'desc']).nullish(),
    tags: z.array(z.string()).max(5).optional(),
    rules: z.array(z.object({ a: z.int() })).optional(),
    config: z.record(z.string(), z.unknown()).optional(),
    either: z.union([z.string(), z.int()]).optional(),
    threshold: z.number().nullable(),
  }),
  response: z.object({}),
  errors: [],
})

const flags = flagsOf(endpoint)
const flag = (name: string) => flags.find((one) => one.name === name)

test('a name that is taken gets its part in front', () => {
  expect(flags.slice(0, 4).map(({ name }) => name)).toEqual([
    'thing-id',
    'limit',
    'body-url',
    'body-thing-id',
  ])
})

test('a query number is an integer to its reader, and its default makes it optional', () => {
  expect(flag('limit')).toMatchObject({
    shape: { kind: 'integer', bounds: '1 to 100' },
    isRequired: false,
    description: 'Page size. Default: 20.',
  })
})

test('a header has a flag like everything else', () => {
  const headers = z.object({ 'If-Match': z.string().max(200).optional() })
  const [header] = flagsOf({ ...endpoint, params: z.object({}), query: z.object({}), headers })
  expect(header).toMatchObject({ name: 'if-match', part: 'headers', member: 'If-Match' })
  expect(header?.isRequired).toBe(false)
})

test('a header of ours has a flag without the prefix', () => {
  const headers = z.object({ 'X-Gatehouse-Set': z.string().max(80).optional() })
  const [header] = flagsOf({ ...endpoint, params: z.object({}), query: z.object({}), headers })
  expect(header).toMatchObject({ name: 'set', part: 'headers', member: 'X-Gatehouse-Set' })
})

test('every member has a shape; what has no plain form is JSON', () => {
  const kinds = flags.filter(({ part }) => part === 'body').map(({ shape }) => shape.kind)
  expect(kinds.join(' ')).toBe('text text boolean text list list json json number')
  expect(flag('order')).toMatchObject({
    shape: { isNullable: true, bounds: 'one of asc, desc' },
    isRequired: false,
  })
  expect(flag('rules')?.shape.items?.kind).toBe('json')
  expect(flag('threshold')).toMatchObject({ shape: { isNullable: true }, isRequired: true })
})

test('a body that is a choice of objects offers the members of all of them', () => {
  const body = z.discriminatedUnion('type', [
    z.strictObject({ type: z.literal('s3'), bucket: z.string() }),
    z.strictObject({ type: z.literal('splunk'), token: z.string() }),
  ])
  const found = flagsOf({ ...endpoint, params: z.object({}), query: z.object({}), body })
  expect(found.map(({ name, isRequired }) => [name, isRequired])).toEqual([
    ['type', true],
    ['bucket', false],
    ['token', false],
  ])
  expect(found[0]?.shape.bounds).toBe('one of s3, splunk')
})

test('every operation that needs a credential is a command, with the summary of the contract', () => {
  const guarded = endpoints.filter(({ permission }) => permission !== null)
  expect(commands.map(({ operationId, summary }) => [operationId, summary])).toEqual(
    guarded.map(({ id, summary }) => [id, summary]),
  )
})

test('every command has its own name, and every flag is unique in its command', () => {
  expect(new Set(commands.map(({ name }) => name)).size).toBe(commands.length)
  const endpointOf = new Map<string, Endpoint>(endpoints.map((one) => [one.id, one]))
  for (const command of commands) {
    const names = flagsOf(endpointOf.get(command.operationId)!).map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
    for (const name of [command.name, ...names]) expect(name).toMatch(/^[a-z0-9]+(-[a-z0-9]+)*$/)
  }
})
