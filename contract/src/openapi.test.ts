import { expect, test } from 'vitest'
import { z } from 'zod'

import { listAdminApiKeys } from './api-key.ts'
import { type Endpoint, errorsOf, errorsOfAnyRequest } from './endpoint.ts'
import { endpoints } from './endpoints.ts'
import { dialects, statusIn } from './error-body.ts'
import { errors } from './error.ts'
import { exampleOf } from './examples/examples.ts'
import { toOpenApi } from './openapi.ts'

type Parameter = {
  name: string
  in: string
  required: boolean
  schema: object
  example?: unknown
}
type Media = { schema: object; example?: unknown }
type Answer = {
  description: string
  headers: Record<string, { $ref: string } | { schema: object; required?: true }>
  content: Record<string, Media>
}
type Operation = {
  operationId: string
  tags: string[]
  security: Record<string, unknown>[]
  parameters?: Parameter[]
  requestBody?: { content: Record<string, Media> }
  responses: Record<string, Answer>
}
type Document = {
  openapi: string
  servers: { url: string }[]
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, Operation>>
  components: Record<'schemas' | 'headers' | 'securitySchemes', Record<string, object>> & {
    responses: Record<string, Answer>
  }
}

type Shared = Answer | { $ref: string }

/** The document, with shared answers in the place of references to them. */
function print(list: readonly Endpoint[]): Document {
  const printed = JSON.parse(JSON.stringify(toOpenApi(list))) as Document
  for (const operation of Object.values(printed.paths).flatMap((path) => Object.values(path))) {
    for (const [status, answer] of Object.entries<Shared>(operation.responses)) {
      if (!('$ref' in answer)) continue
      const name = answer.$ref.replace('#/components/responses/', '')
      operation.responses[status] = printed.components.responses[name]!
    }
  }
  return printed
}
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
    .filter((ref) => {
      const [, kind = '', name = ''] =
        /^#\/components\/(schemas|headers)\/([\w.-]+)$/.exec(ref) ?? []
      return !Object.hasOwn(from.components[kind as 'schemas'] ?? {}, name)
    })
}

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
  // A project key can also be sent in x-api-key.
  const schemes = endpoint.credentials.flatMap((kind) =>
    kind === 'project_key' ? [kind, 'project_key_header'] : [kind],
  )
  expect(security.flatMap(Object.keys)).toEqual(schemes)
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
  for (const code of [...errorsOf(endpoint), ...errorsOfAnyRequest]) {
    expect(out.responses[statusIn(endpoint.dialect, errors[code].status)]?.description).toContain(
      `\`${code}\``,
    )
  }
  expect(out.responses).toHaveProperty(String(endpoint.successStatus))
})

test.each(operations)(
  '$id: it takes a body, headers and a key exactly when it says so',
  (endpoint, out) => {
    const headers = (out.parameters ?? []).filter((parameter) => parameter.in === 'header')
    expect(headers.map(({ name }) => name)).toEqual([
      ...Object.keys(endpoint.headers?.shape ?? {}),
      ...(endpoint.isIdempotent ? ['Idempotency-Key'] : []),
      ...(endpoint.isConditional ? ['If-None-Match'] : []),
      ...(endpoint.takesFreeRequests ? ['X-Free-Tier'] : []),
    ])
    expect('requestBody' in out).toBe(endpoint.body !== undefined)
  },
)

test('an overload is documented with the status its family answers', () => {
  const statusesOf = (dialect: Endpoint['dialect']) => {
    const printed = print([{ ...listAdminApiKeys, dialect, errors: ['overloaded'] }])
    return Object.keys(printed.paths['/v1/organization/admin_api_keys']?.['get']?.responses ?? {})
  }
  expect(statusesOf('admin')).not.toContain('529')
  expect(statusesOf('messages')).toContain('529')
})

const find = (id: string) => operations.find(([endpoint]) => endpoint.id === id)![1]

test.each([
  [
    'createMessage',
    [400, 401, 402, 403, 404, 408, 413, 414, 422, 429, 431, 500, 502, 503, 504, 529],
  ],
  ['createResponse', [400, 401, 402, 403, 404, 408, 413, 414, 422, 429, 431, 500, 502, 503, 504]],
  [
    'createChatCompletion',
    [400, 401, 402, 403, 404, 408, 413, 414, 422, 429, 431, 500, 502, 503, 504],
  ],
  ['countTokens', [400, 401, 403, 404, 408, 413, 414, 422, 429, 431, 500, 503, 529]],
])('%s lists every status that it can answer', (id, statuses) => {
  expect(Object.keys(find(id).responses).map(Number)).toEqual([200, ...statuses])
})

const isOptionalComponent = (ref: string) =>
  !('required' in document.components.headers[ref.replace('#/components/headers/', '')]!)

const presenceOf = (answer: Answer | undefined) => {
  const names = Object.entries(answer?.headers ?? {})
  const isOptional = ([, header]: (typeof names)[number]) =>
    '$ref' in header ? isOptionalComponent(header.$ref) : header.required !== true
  return {
    always: names.filter((each) => !isOptional(each)).map(([name]) => name),
    sometimes: names.filter(isOptional).map(([name]) => name),
  }
}

const everywhere = ['x-request-id', 'request-id', 'Cache-Control']
const limitsOf = (name: string) =>
  ['limit', 'remaining', 'reset'].map((part) => `x-ratelimit-${part}-${name}`)
const reached = ['Limit', 'Remaining', 'Reset', 'Scope', 'Metric'].map(
  (part) => `X-RateLimit-${part}`,
)

test('an answer of a model carries its limits, what the policies decided and what was removed', () => {
  expect(presenceOf(find('createMessage').responses[200])).toEqual({
    always: [
      ...everywhere,
      ...limitsOf('requests'),
      ...limitsOf('tokens'),
      'x-policy-epoch',
      'x-policy-decision',
    ],
    sometimes: [
      ...limitsOf('project-tokens'),
      'x-policy-holdback',
      'x-gatehouse-removed',
      'X-Accel-Buffering',
    ],
  })
})

test('what depends on the client says so', () => {
  for (const [{ dialect }, { responses }] of operations) {
    for (const [status, answer] of Object.entries(responses)) {
      const isByClient = dialect === 'responses' && status !== '431'
      expect(presenceOf(answer).sometimes.includes('Vary')).toBe(isByClient)
    }
  }
})

test('a refusal says how to go on', () => {
  const { responses } = find('updatePolicy')
  expect(presenceOf(responses[401]).always).toContain('WWW-Authenticate')
  expect(presenceOf(responses[403]).sometimes).toContain('WWW-Authenticate')
  expect(presenceOf(responses[429]).always).toEqual([...everywhere, 'Retry-After', ...reached])
  expect(presenceOf(responses[409]).sometimes).toEqual([
    'Retry-After',
    'x-should-retry',
    'Idempotent-Replayed',
  ])
  for (const [{ successStatus }, { responses: all }] of operations) {
    for (const [status, answer] of Object.entries(all)) {
      const isLater = ['429', '503', '529'].includes(status)
      expect(presenceOf(answer).always.includes('Retry-After')).toBe(isLater)
      expect(presenceOf(answer).always).toEqual(expect.arrayContaining(everywhere))
    }
    expect(presenceOf(all[successStatus]).always).not.toContain('WWW-Authenticate')
  }
})

test('an answer that operations have in common is written once', () => {
  const { paths, components } = toOpenApi(endpoints) as unknown as Document
  const { get } = paths['/v1/organization/policies']!
  expect(get?.responses[401]).toEqual({ $ref: '#/components/responses/admin.401' })
  expect(components.responses['admin.401']?.description).toContain('missing_credentials')
  const forms = Object.values(paths)
    .flatMap((path) => Object.values(path))
    .map(({ responses }) => JSON.stringify(responses[429]))
  expect(new Set(forms).size).toBeLessThan(10)
})

test('exactly the calls of models can be streamed', () => {
  const streamed = operations.filter(
    ([{ successStatus }, { responses }]) =>
      'text/event-stream' in (responses[successStatus]?.content ?? {}),
  )
  expect(streamed.map(([{ id }]) => id)).toEqual([
    'createMessage',
    'createResponse',
    'createChatCompletion',
  ])
})

test('every operation belongs to one declared tag, and every tag has operations', () => {
  const declared = document.tags.map(({ name }) => name)
  const used = operations.flatMap(([, { tags }]) => tags)
  expect(used.length).toBe(operations.length)
  expect([...new Set(used)].toSorted()).toEqual(declared.toSorted())
})

test('a client knows where to send its calls', () => {
  expect(document.servers.map(({ url }) => url)).toEqual(['/', 'https://{host}'])
})

test.each(operations)(
  '$id: its example is a valid request with a valid answer',
  (endpoint, out) => {
    const example = exampleOf(endpoint)!
    const { params, query, body } = endpoint
    expect(Object.keys(example.params ?? {})).toEqual(Object.keys(params?.shape ?? {}))
    params?.parse(example.params)
    query?.parse(example.query ?? {})
    // Strict objects refuse unknown members; the query and the answer do not, so nothing may be lost. Defaults may be added.
    expect(Object.keys(query?.shape ?? {})).toEqual(
      expect.arrayContaining(Object.keys(example.query ?? {})),
    )
    expect(example.body === undefined).toBe(body === undefined)
    if (body) expect(body.parse(example.body)).toMatchObject(example.body as object)
    expect(endpoint.response.parse(example.answer)).toEqual(example.answer)

    const { content } = out.responses[endpoint.successStatus]!
    expect(content['application/json']?.example).toEqual(example.answer)
    expect(out.requestBody?.content['application/json']?.example).toEqual(example.body)
    const shown = (out.parameters ?? []).filter((parameter) => 'example' in parameter)
    expect(shown.map(({ name }) => name)).toEqual([
      ...Object.keys(example.params ?? {}),
      ...Object.keys(query?.shape ?? {}).filter((name) => name in (example.query ?? {})),
    ])
  },
)
