import { z } from 'zod'

import { type Endpoint, errorsOf } from './endpoint.ts'
import { errorBodies, statusIn } from './error-body.ts'
import { type ErrorCode, errors } from './error.ts'

type Json = Record<string, unknown>

export const apiVersion = '0.1.0'

/** Renders the endpoints as OpenAPI 3.1. Schemas with a meta id become components. */
export function toOpenApi(endpoints: readonly Endpoint[]): Json {
  const paths: Record<string, Json> = {}
  for (const endpoint of endpoints) {
    const path = endpoint.path.replaceAll(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [endpoint.method.toLowerCase()]: operation(endpoint) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Gatehouse',
      version: apiVersion,
      description: 'Policy administration and model gateway.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    paths,
    components: { schemas: components(), securitySchemes },
  }
}

const securitySchemes = {
  admin_key: { type: 'http', scheme: 'bearer', description: 'Administrator key, gate_adm_…' },
  project_key: { type: 'http', scheme: 'bearer', description: 'Project API key, gate_prj_…' },
  jwt: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
}

function operation(endpoint: Endpoint): Json {
  const { id, summary, permission, body } = endpoint
  const parameters = [
    ...parametersIn('path', endpoint.params),
    ...parametersIn('query', endpoint.query),
    ...(endpoint.isIdempotent ? [idempotencyKey] : []),
    ...(endpoint.takesFreeRequests ? [freeTier] : []),
  ]
  return {
    operationId: id,
    summary,
    ...(permission && { description: `Needs the permission \`${permission}\`.` }),
    ...(permission && { 'x-permission': permission, 'x-body-limit': endpoint.bodyLimitBytes }),
    security: toSecurity(endpoint),
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: true, content: json(toSchema(body, 'input')) } }),
    responses: responses(endpoint),
  }
}

/** An empty requirement means that the operation can be called without a credential. */
function toSecurity({ credentials, takesFreeRequests }: Endpoint): Json[] {
  const requirements = credentials.map((kind) => ({ [kind]: [] }))
  return takesFreeRequests ? [...requirements, {}] : requirements
}

const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'Requests with the same key have one effect and get the same answer, for 24 hours after the first.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
}

const freeTier = {
  name: 'X-Free-Tier',
  in: 'header',
  required: false,
  description:
    'Asks for the one free request of an anonymous caller, if the gateway offers it. Ignored when a credential is sent.',
  schema: { type: 'string', enum: ['true'] },
}

function responses(endpoint: Endpoint): Json {
  const success = {
    description: 'OK',
    headers: requestIdHeaders,
    content: json(toSchema(endpoint.response, 'output')),
  }
  return {
    [endpoint.successStatus]: success,
    ...Object.fromEntries(
      Object.entries(Object.groupBy(errorsOf(endpoint), (code) => statusFor(endpoint, code))).map(
        ([status, codes = []]) => [status, failure(endpoint, codes)],
      ),
    ),
  }
}

const statusFor = (endpoint: Endpoint, code: ErrorCode) =>
  statusIn(endpoint.dialect, errors[code].status)

const requestIdHeaders = {
  'x-request-id': { description: 'The id of this request.', schema: { type: 'string' } },
}

function failure(endpoint: Endpoint, codes: readonly ErrorCode[]): Json {
  return {
    description: codes.map((code) => `\`${code}\`: ${errors[code].meaning}`).join('\n\n'),
    headers: requestIdHeaders,
    content: json(toSchema(errorBodies[endpoint.dialect], 'output')),
  }
}

const json = (schema: Json) => ({ 'application/json': { schema } })

const reference = (id: string) => `#/components/schemas/${id}`

function toSchema(schema: z.ZodType, io: 'input' | 'output'): Json {
  const id = schema.meta()?.id
  if (id) return { $ref: reference(id) }
  const { $schema: _, $defs: __, ...inline } = z.toJSONSchema(schema, { io })
  // Named schemas inside this one are rendered by `components`.
  return JSON.parse(JSON.stringify(inline).replaceAll('"#/$defs/', `"${reference('')}`)) as Json
}

function parametersIn(where: 'path' | 'query', schema?: z.ZodObject) {
  return Object.entries(schema?.shape ?? {}).map(([name, field]) => {
    const type = field as z.ZodType
    // The output schema: on the wire a number in a query is a string, but it is documented as an integer.
    const { description, ...rest } = toSchema(type, 'output')
    const isRequired = where === 'path' || !type.safeParse(undefined).success
    return {
      name,
      in: where,
      required: isRequired,
      ...(description ? { description } : {}),
      schema: rest,
    }
  })
}

function components(): Json {
  const { schemas } = z.toJSONSchema(z.globalRegistry, { uri: reference, io: 'input' })
  return Object.fromEntries(
    Object.entries(schemas)
      .toSorted(([left], [right]) => (left < right ? -1 : 1))
      .map(([name, { $schema: _, $id: __, id: ___, ...schema }]) => [name, schema as Json]),
  )
}
