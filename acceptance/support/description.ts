import type { Endpoint } from '@gatehouse/contract/endpoint'
import { endpoints } from '@gatehouse/contract/endpoints'
import { toOpenApi } from '@gatehouse/contract/openapi'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { expect } from 'vitest'

type Answer = { status: number; headers: Headers; text: string; json: unknown }
type Schema = Record<string, unknown>
type Header = { required?: boolean; schema: Schema }
type Described = {
  headers: Record<string, Header>
  content: Record<string, { schema: Schema; example?: unknown }>
}
export type Operation = {
  operationId: string
  parameters?: { name: string; in: string; example?: unknown }[]
  requestBody?: { content: Record<string, { example?: unknown }> }
  responses: Record<string, Described>
}
type Document = {
  paths: Record<string, Record<string, Operation>>
  components: Record<string, Record<string, unknown>>
}

export const description = JSON.parse(JSON.stringify(toOpenApi(endpoints))) as Document

export const operations = new Map(
  Object.values(description.paths)
    .flatMap((path) => Object.values(path))
    .map((operation) => [operation.operationId, operation]),
)

function resolve<Thing extends object>(thing: Thing): Thing {
  if (!('$ref' in thing)) return thing
  const [, , kind = '', name = ''] = String(thing.$ref).split('/')
  return description.components[kind]?.[name] as Thing
}

// Not the library that the description was made with: it must mean the same to others.
const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true })
const validators = new Map<Schema, ValidateFunction>()

/** What is wrong with a value, by a schema of the description; empty when nothing is. */
function violations(schema: Schema, value: unknown): string {
  const { components } = description
  const validate = validators.get(schema) ?? ajv.compile({ ...schema, components })
  validators.set(schema, validate)
  return validate(value) ? '' : ajv.errorsText(validate.errors)
}

/** Headers of HTTP itself, which no description lists. */
const transport = new Set([
  'connection',
  'content-length',
  'content-type',
  'date',
  'keep-alive',
  'transfer-encoding',
])

/** Compares an answer with the description: its status, all of its headers, its media type and its body. */
export function expectDescribed({ id }: Pick<Endpoint, 'id'>, answer: Answer) {
  const { status, headers, text, json } = answer
  const listed = operations.get(id)?.responses[status]
  if (!listed) expect.fail(`The description of ${id} has no status ${status}: ${text}`)
  const described = resolve(listed)
  expectHeaders(`${id} ${status}`, described, headers)
  const mediaType = headers.get('content-type')?.split(';')[0] ?? ''
  expect(Object.keys(described.content), `${id} ${status}`).toContain(mediaType)
  if (mediaType !== 'application/json') return
  const { schema } = described.content[mediaType]!
  expect(violations(schema, json), `${id} ${status}: ${text}`).toBe('')
}

function expectHeaders(what: string, { headers: described }: Described, headers: Headers) {
  const known = new Map(
    Object.entries(described).map(([name, header]) => [name.toLowerCase(), resolve(header)]),
  )
  for (const [name, { required, schema }] of known) {
    const sent = headers.get(name)
    if (required) expect(sent, `${what} always has ${name}`).not.toBeNull()
    if (sent === null) continue
    const value = schema['type'] === 'integer' && /^\d+$/.test(sent) ? Number(sent) : sent
    expect(violations(schema, value), `${what} has ${name}: ${sent}`).toBe('')
  }
  const undescribed = [...headers.keys()].filter((name) => !transport.has(name) && !known.has(name))
  expect(undescribed, `${what} has headers that are not described`).toEqual([])
}
