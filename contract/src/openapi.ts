import { z } from 'zod'

import { type Endpoint, errorsOf, errorsOfAnyRequest } from './endpoint.ts'
import { errorBodies, errorBodyAt, statusIn } from './error-body.ts'
import { type ErrorCode, errors } from './error.ts'
import { exampleOf } from './examples/examples.ts'
import { headerComponents, headersOf, isStreamable } from './openapi/headers.ts'
import { type Operation, shareFailures } from './openapi/share.ts'
import { tagOf, tags } from './openapi/tags.ts'

type Json = Record<string, unknown>

export const apiVersion = '0.1.0'

/** Renders the endpoints as OpenAPI 3.1. Schemas with a meta id become components. */
export function toOpenApi(endpoints: readonly Endpoint[]): Json {
  const all = endpoints.map((endpoint) => ({ endpoint, operation: describe(endpoint) }))
  const { described, responses } = shareFailures(all)
  const paths: Record<string, Json> = {}
  for (const { endpoint, operation } of described) {
    const path = endpoint.path.replaceAll(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [endpoint.method.toLowerCase()]: operation }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Gatehouse',
      version: apiVersion,
      description: 'Policy administration and model gateway.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers,
    tags,
    paths,
    components: { schemas: components(), responses, headers: headerComponents, securitySchemes },
  }
}

/** Every operator has an address of their own; the first entry is the one that served the document. */
const servers = [
  { url: '/', description: 'The service that this description was read from.' },
  {
    url: 'https://{host}',
    description: 'For clients that are generated from a file.',
    variables: { host: { default: 'gatehouse.example.com' } },
  },
]

const securitySchemes = {
  admin_key: { type: 'http', scheme: 'bearer', description: 'Administrator key, gate_adm_…' },
  project_key: { type: 'http', scheme: 'bearer', description: 'Project API key, gate_prj_…' },
  project_key_header: {
    type: 'apiKey',
    in: 'header',
    name: 'x-api-key',
    description:
      "Project API key, in the header that Anthropic's clients send. Ignored when there is an Authorization header.",
  },
  jwt: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'Token of an issuer that the operator has configured.',
  },
  session: { type: 'http', scheme: 'bearer', description: 'Session of a person, gate_ses_…' },
}

function describe(endpoint: Endpoint): Operation {
  const { id, summary, permission, body } = endpoint
  const example = exampleOf(endpoint)
  const parameters = [
    ...parametersIn('path', endpoint.params, example?.params),
    ...parametersIn('query', endpoint.query, example?.query),
    ...parametersIn('header', endpoint.headers),
    ...(endpoint.isIdempotent ? [idempotencyKey] : []),
    ...(endpoint.isConditional ? [ifNoneMatch] : []),
    ...(endpoint.takesFreeRequests ? [freeTier] : []),
  ]
  return {
    operationId: id,
    summary,
    tags: [tagOf(endpoint)],
    ...(permission && { description: `${describePermissions(endpoint)}${describeSets(endpoint)}` }),
    ...(permission && { 'x-permission': permission, 'x-body-limit': endpoint.bodyLimitBytes }),
    ...(endpoint.orProjectRole && { 'x-project-role': endpoint.orProjectRole }),
    ...(endpoint.orSelf && { 'x-or-self': true }),
    security: toSecurity(endpoint),
    ...(parameters.length > 0 && { parameters }),
    ...(body && {
      requestBody: { required: true, content: json(toSchema(body, 'input'), example?.body) },
    }),
    responses: describeAnswers(endpoint),
  }
}

function describePermissions(endpoint: Endpoint): string {
  const { permission, furtherPermissions = [], orPermission, orProjectRole, orSelf } = endpoint
  if (permission === 'any') return 'Needs a valid credential, whatever its permissions.'
  const further = furtherPermissions.map((each) => `, and \`${each.permission}\` ${each.when}`)
  const other = orPermission ? `, or \`${orPermission.permission}\` ${orPermission.when}` : ''
  const role = orProjectRole ? `, or the role \`${orProjectRole}\` in the project` : ''
  const self = orSelf ? '; the member of the path needs none' : ''
  return `Needs the permission \`${permission}\`${further.join('')}${other}${role}${self}.`
}

function describeSets({ managed, exemptFromSet }: Endpoint): string {
  if (managed === 'exempt') return ' Never refused because of the set that manages the object.'
  return exemptFromSet
    ? ` A request ${exemptFromSet.when} is never refused because of the set that manages the object.`
    : ''
}

/** An empty requirement means that the operation can be called without a credential. */
function toSecurity({ credentials, takesFreeRequests }: Endpoint): Json[] {
  const requirements = credentials.flatMap((kind) =>
    kind === 'project_key' ? [{ [kind]: [] }, { project_key_header: [] }] : [{ [kind]: [] }],
  )
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

const ifNoneMatch = {
  name: 'If-None-Match',
  in: 'header',
  required: false,
  description:
    'The `ETag` of an earlier answer: if nothing has changed since, this one is an empty 304.',
  schema: { type: 'string', maxLength: 1000 },
}

const freeTier = {
  name: 'X-Free-Tier',
  in: 'header',
  required: false,
  description:
    'Asks for the one free request of an anonymous caller, if the gateway offers it. Ignored when a credential is sent.',
  schema: { type: 'string', enum: ['true'] },
}

function describeAnswers(endpoint: Endpoint): Record<string, Json> {
  const codes = [...new Set([...errorsOf(endpoint), ...errorsOfAnyRequest])]
  const byStatus = new Map<number, ErrorCode[]>()
  for (const code of codes) {
    for (const status of statusesOf(endpoint, code)) {
      byStatus.set(status, [...(byStatus.get(status) ?? []), code])
    }
  }
  return {
    [endpoint.successStatus]: success(endpoint),
    ...(endpoint.isConditional && {
      304: { description: 'Nothing has changed.', headers: headersOf(endpoint, 304) },
    }),
    ...Object.fromEntries(
      [...byStatus].map(([status, codes]) => [status, failure(endpoint, status, codes)]),
    ),
  }
}

/** A code has one status, except that a model provider's refusal keeps the provider's own. */
const statusesOf = (endpoint: Endpoint, code: ErrorCode): readonly number[] =>
  code === 'upstream_rejected' ? [400, 413, 422] : [statusIn(endpoint.dialect, errors[code].status)]

function success(endpoint: Endpoint): Json {
  const answer = json(toSchema(endpoint.response, 'output'), exampleOf(endpoint)?.answer)
  return {
    description: 'OK',
    headers: headersOf(endpoint, endpoint.successStatus),
    content: { ...answer, ...(isStreamable(endpoint) && { 'text/event-stream': eventStream }) },
  }
}

const eventStream = {
  schema: {
    type: 'string',
    description:
      "With `stream: true`: server-sent events in the vendor's format. The last event of an answer carries `remaining_credits`, `estimated_credits_used` and `estimated_cost_usd`. A failure after the first event ends the stream with an error event.",
  },
}

function failure(endpoint: Endpoint, status: number, codes: readonly ErrorCode[]): Json {
  return {
    description: codes.map((code) => `\`${code}\`: ${errors[code].meaning}`).join('\n\n'),
    headers: headersOf(endpoint, status),
    content: json(toSchema(errorBodyOf(endpoint, status), 'output')),
  }
}

/** While headers are being received the path is not known, so those failures have the administration body. */
function errorBodyOf({ dialect }: Endpoint, status: number): z.ZodType {
  const body = errorBodyAt(dialect, status)
  if (status === 431) return errorBodies.admin
  return status === 408 && dialect !== 'admin' ? z.union([body, errorBodies.admin]) : body
}

const json = (schema: Json, example?: unknown) => ({
  'application/json': { schema, ...(example !== undefined && { example }) },
})

const reference = (id: string) => `#/components/schemas/${id}`

function toSchema(schema: z.ZodType, io: 'input' | 'output'): Json {
  const id = schema.meta()?.id
  if (id) return { $ref: reference(id) }
  const { $schema: _, $defs: __, ...inline } = z.toJSONSchema(schema, { io })
  // Named schemas inside this one are rendered by `components`.
  return JSON.parse(JSON.stringify(inline).replaceAll('"#/$defs/', `"${reference('')}`)) as Json
}

function parametersIn(
  where: 'path' | 'query' | 'header',
  schema: z.ZodObject | undefined,
  example: Record<string, unknown> = {},
) {
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
      // Parsed, because the schema is that of the parsed value.
      ...(name in example && { example: type.parse(example[name]) }),
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
