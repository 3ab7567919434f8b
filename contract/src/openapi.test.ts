import { expect, test } from 'vitest'
import { z } from 'zod'

import { listAdminApiKeys } from './api-key.ts'
import { type Endpoint, errorsOf } from './endpoint.ts'
import { endpoints } from './endpoints.ts'
import { dialects, statusIn } from './error-body.ts'
import { errors } from './error.ts'
import { toOpenApi } from './openapi.ts'

type Parameter = { name: string; in: string; required: boolean; schema: object }
type Operation = {
  operationId: string
  security: Record<string, unknown>[]
  parameters?: Parameter[]
  requestBody?: { content: Record<string, { schema: object }> }
  responses: Record<string, { description: string; content: Record<string, { schema: object }> }>
}
type Document = {
  openapi: string
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, object>; securitySchemes: Record<string, object> }
}

const print = (list: readonly Endpoint[]) => JSON.parse(JSON.stringify(toOpenApi(list))) as Document
const document = print(endpoints)

const operations = endpoints.map((endpoint: Endpoint) => {
  const path = endpoint.path.replaceAll(/:(\w+)/g, '{$1}')
  return [endpoint, document.paths[path]?.[endpoint.method.toLowerCase()] as Operation] as const
})
const guarded = operations.filter(([{ permission }]) => permission !== null)

/** Every object anywhere in a document. */
function parts(value: unknown): Record<string, unknown>[] {
  if (typeof value !== 'object' || value === null) return []
  const inner = Object.values(value).flatMap(parts)
  return Array.isArray(value) ? inner : [value as Record<string, unknown>, ...inner]
}

function danglingReferences(from: Document): string[] {
  return parts(from)
    .flatMap(({ $ref }) => (typeof $ref === 'string' ? [$ref] : []))
    .filter((ref) => !Object.keys(from.components.schemas).includes(nameIn(ref)))
}
const nameIn = (ref: string) => /^#\/components\/schemas\/([\w.-]+)$/.exec(ref)?.[1] ?? ''

test('the document lists every endpoint once and nothing else', () => {
  const printed = Object.values(document.paths).flatMap((path) =>
    Object.values(path).map(({ operationId }) => operationId),
  )
  expect(document.openapi).toBe('3.1.0')
  expect(printed.toSorted()).toEqual(endpoints.map(({ id }) => id as string).toSorted())
})

test('every reference resolves', () => {
  expect(parts(document).filter(({ $ref }) => $ref).length).toBeGreaterThan(50)
  expect(danglingReferences(document)).toEqual([])
})

test.each(dialects)('every reference resolves in the errors of the family %s', (dialect) => {
  const printed = print([{ ...listAdminApiKeys, dialect }])
  expect(danglingReferences(printed)).toEqual([])
})

test('a named schema inside an unnamed one is referred to, not repeated', () => {
  const Named = z.object({ a: z.string() }).meta({ id: 'TestOnlyNamed' })
  const response = z.object({ one: Named, many: z.array(Named) })
  const printed = print([{ ...listAdminApiKeys, response }])
  const operation = printed.paths['/v1/organization/admin_api_keys']?.['get']
  expect(operation?.responses['200']?.content['application/json']?.schema).toMatchObject({
    properties: {
      one: { $ref: '#/components/schemas/TestOnlyNamed' },
      many: { items: { $ref: '#/components/schemas/TestOnlyNamed' } },
    },
  })
  expect(danglingReferences(printed)).toEqual([])
})

test('no keyword of a nested document is left behind', () => {
  const leftovers = parts(document).filter((part) => '$schema' in part || '$defs' in part)
  expect(leftovers).toEqual([])
})

test.each(Object.entries(document.paths))('%s declares each of its parameters', (path, methods) => {
  const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
  for (const { parameters = [] } of Object.values(methods)) {
    const inPath = parameters.filter((parameter) => parameter.in === 'path')
    expect(inPath.map(({ name }) => name)).toEqual(named)
    expect(inPath.every(({ required }) => required)).toBe(true)
  }
  expect(path).not.toContain(':')
})

test('no operation declares a parameter twice, and each has a schema', () => {
  for (const [, { parameters = [] }] of operations) {
    const names = parameters.map((parameter) => `${parameter.in} ${parameter.name}`)
    expect(new Set(names).size).toBe(names.length)
    expect(parameters.every(({ schema }) => Object.keys(schema).length > 0)).toBe(true)
  }
})

test('a page size is an optional integer with its bounds and its default', () => {
  const [, list] = operations.find(([{ id }]) => id === 'listProjects') ?? []
  expect(list?.parameters?.find(({ name }) => name === 'limit')).toMatchObject({
    in: 'query',
    required: false,
    schema: { type: 'integer', minimum: 1, maximum: 100, default: 20 },
  })
})

test('a bound on text is documented as maxLength', () => {
  expect(document.components.schemas['ProjectCreation']).toMatchObject({
    properties: { name: { type: 'string', minLength: 1, maxLength: 80 } },
    required: ['name'],
    additionalProperties: false,
  })
})

test.each(guarded)('$id: it can answer 401, 403, 429, 500 and 503', (_, { responses }) => {
  for (const status of [401, 403, 429, 500, 503]) expect(responses).toHaveProperty(String(status))
})

test.each(guarded)('$id: it names a credential that is declared', (endpoint, { security }) => {
  expect(security.flatMap(Object.keys)).toEqual([...endpoint.credentials])
  const declared = Object.keys(document.components.securitySchemes)
  expect(declared).toEqual(expect.arrayContaining(security.flatMap(Object.keys)))
})

test.each(guarded)(
  '$id: it says whether it can be called without a credential',
  (endpoint, out) => {
    const isOptional = out.security.some((requirement) => Object.keys(requirement).length === 0)
    expect(isOptional).toBe(endpoint.takesFreeRequests ?? false)
  },
)

test('a public operation says that it needs no credential', () => {
  const open = operations.filter(([{ permission }]) => permission === null)
  expect(open.map(([, { security }]) => security)).toEqual(open.map(() => []))
})

test.each(operations)('$id: every error it can answer stands under its status', (endpoint, out) => {
  for (const code of errorsOf(endpoint)) {
    expect(out.responses[statusIn(endpoint.dialect, errors[code].status)]?.description).toContain(
      `\`${code}\``,
    )
  }
  expect(out.responses).toHaveProperty(String(endpoint.successStatus))
})

test.each(operations)('$id: it takes a body and a key exactly when it says so', (endpoint, out) => {
  const headers = (out.parameters ?? []).filter((parameter) => parameter.in === 'header')
  expect(headers.map(({ name }) => name)).toEqual([
    ...(endpoint.isIdempotent ? ['Idempotency-Key'] : []),
    ...(endpoint.takesFreeRequests ? ['X-Free-Tier'] : []),
  ])
  expect('requestBody' in out).toBe(endpoint.body !== undefined)
})

test('an overload is documented with the status its family answers', () => {
  const statusesOf = (dialect: Endpoint['dialect']) => {
    const printed = print([{ ...listAdminApiKeys, dialect, errors: ['overloaded'] }])
    return Object.keys(printed.paths['/v1/organization/admin_api_keys']?.['get']?.responses ?? {})
  }
  expect(statusesOf('admin')).not.toContain('529')
  expect(statusesOf('messages')).toContain('529')
})
