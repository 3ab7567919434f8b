import type { z } from 'zod'

import type { Dialect } from './error-body.ts'
import type { ErrorCode } from './error.ts'
import type { Permission } from './permission.ts'
import { PolicyHeaders } from './policy-gateway/policy-headers.ts'
import type { ProjectRole } from './role.ts'

/** A session is that of a person who has signed in. */
export type CredentialKind = 'admin_key' | 'project_key' | 'jwt' | 'session'
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

type Base = {
  readonly id: string
  readonly summary: string
  readonly method: Method
  readonly path: `/${string}`
  readonly dialect: Dialect
  readonly params?: z.ZodObject
  readonly query?: z.ZodObject
  /** The headers that it reads besides those of its family. All are optional. */
  readonly headers?: z.ZodObject
  readonly body?: z.ZodType
  /** The largest body in bytes. An endpoint without a body schema ignores a body of up to this size. */
  readonly bodyLimitBytes: number
  readonly response: z.ZodType
  readonly successStatus: 200 | 201
  /** Errors of this operation, besides those that follow from its shape (`errorsOf`). */
  readonly errors: readonly ErrorCode[]
  /** Takes an Idempotency-Key: key, effect and stored answer commit together. */
  readonly isIdempotent: boolean
  /** Serves one request per anonymous caller, with the header `X-Free-Tier: true`. */
  readonly takesFreeRequests?: boolean
  /** The member of a successful answer that is also sent as its `ETag`. */
  readonly etag?: string
  /** Pages poll it: its answer has an `ETag` of all that it says, and `If-None-Match` with that gets a 304. */
  readonly isConditional?: boolean
  /**
   * Given for objects that a set can manage. `change`: 409 unless the request is one of the set that manages the object;
   * `exempt`: never refused because of its set.
   */
  readonly managed?: 'create' | 'change' | 'exempt'
  /** Which requests of an endpoint that changes such objects are exempt. */
  readonly exemptFromSet?: Exemption
  /** What some requests need besides `permission`. */
  readonly furtherPermissions?: readonly FurtherPermission[]
  /** What is enough for some requests in place of `permission`. Which ones is for the endpoint to decide. */
  readonly orPermission?: OtherPermission
  /**
   * A member who has at least this role in the project of the path needs no permission. What such a member may do there is
   * less than with the permission: the specification says what, and the endpoint sees to it.
   */
  readonly orProjectRole?: ProjectRole
  /** The member whom the path names needs no permission: people may look after what is theirs alone. */
  readonly orSelf?: true
}

type Exemption = {
  /** Which requests, as a clause. */
  readonly when: string
  isMet(body: unknown): boolean
}

type OtherPermission = {
  readonly permission: Permission
  /** What for, as the end of a sentence. */
  readonly when: string
}

type FurtherPermission = {
  readonly permission: Permission
  /** Which requests need it, as the end of a sentence. */
  readonly when: string
  /** Asked before the body is validated: whoever lacks the permission is told so first. */
  isNeeded(body: unknown): boolean
}

/** `any`: every valid credential may call it, also one without permissions. */
export type NeededPermission = Permission | 'any'
type Guarded = {
  readonly credentials: readonly CredentialKind[]
  readonly permission: NeededPermission
}
type Public = { readonly credentials: readonly []; readonly permission: null }

/** One HTTP operation: the service binds it, the client calls it, and OpenAPI is generated from it. */
export type Endpoint = Base & (Guarded | Public)

/** The largest body of the administration family: 64 KiB. */
export const adminBodyLimitBytes = 64 * 1024

type Given = Omit<Base, 'dialect' | 'bodyLimitBytes' | 'isIdempotent' | 'successStatus'> & {
  readonly permission: NeededPermission
  readonly successStatus?: 200 | 201
  readonly bodyLimitBytes?: number
  /** Given as false where a call with a body changes nothing. */
  readonly isIdempotent?: boolean
}

type AdminDefaults<Operation extends Given> = {
  readonly dialect: 'admin'
  readonly credentials: readonly ['admin_key', 'session']
  readonly bodyLimitBytes: number
  readonly isIdempotent: boolean
  readonly successStatus: Operation['successStatus'] extends 201 ? 201 : 200
}

/** An administration endpoint, with the members that all of them share. */
export function adminEndpoint<const Operation extends Given>(operation: Operation) {
  return {
    dialect: 'admin',
    credentials: ['admin_key', 'session'],
    bodyLimitBytes: adminBodyLimitBytes,
    isIdempotent: operation.method !== 'GET',
    successStatus: 200,
    ...operation,
  } as Operation & AdminDefaults<Operation>
}

/** The largest body of the policy gateway: 256 KiB. */
export const gatewayBodyLimitBytes = 256 * 1024

type GatewayDefaults<Operation extends Given> = Omit<AdminDefaults<Operation>, 'credentials'> & {
  readonly credentials: readonly ['project_key', 'jwt', 'admin_key', 'session']
}

/** An endpoint of the policy gateway: as in administration, but open to callers of models, and with larger bodies. */
export function gatewayEndpoint<const Operation extends Given>(operation: Operation) {
  return {
    ...adminEndpoint({ bodyLimitBytes: gatewayBodyLimitBytes, ...operation }),
    credentials: ['project_key', 'jwt', 'admin_key', 'session'],
  } as unknown as Operation & GatewayDefaults<Operation>
}

/** The largest body of an anonymous request, which must also declare its length: 64 KiB. */
export const freeBodyLimitBytes = 64 * 1024

/** The largest body of the inference families: 32 MiB. */
export const inferenceBodyLimitBytes = 32 * 1024 * 1024

type GivenInference = Omit<
  Base,
  'method' | 'bodyLimitBytes' | 'headers' | 'isIdempotent' | 'successStatus' | 'errors'
> & { readonly body: z.ZodType; readonly errors?: readonly ErrorCode[] }

/** An endpoint that calls a model or counts its tokens, with the members that all of them share. */
export function inferenceEndpoint<const Operation extends GivenInference>(operation: Operation) {
  return {
    method: 'POST',
    credentials: ['project_key', 'jwt'],
    permission: 'model.invoke',
    bodyLimitBytes: inferenceBodyLimitBytes,
    headers: PolicyHeaders,
    isIdempotent: false,
    successStatus: 200,
    ...operation,
    errors: [...modelErrors, ...(operation.errors ?? [])],
  } as const
}

const modelErrors = [
  'model_not_found',
  'policy_blocked',
  'moderation_blocked',
  'policy_evaluation_unavailable',
  'overloaded',
] as const satisfies readonly ErrorCode[]

/** Errors of a call that reaches a model provider and is charged. */
export const upstreamErrors = [
  'insufficient_credits',
  'budget_exceeded',
  'invalid_image',
  'upstream_rejected',
  'upstream_error',
  'upstream_timeout',
] as const satisfies readonly ErrorCode[]

type Parsed<Schema> = Schema extends z.ZodType ? z.output<Schema> : undefined
type Sent<Schema> = Schema extends z.ZodType ? z.input<Schema> : undefined

/** What a handler receives after validation. */
export type RequestOf<E extends Endpoint> = {
  params: Parsed<E['params']>
  query: Parsed<E['query']>
  headers: Parsed<E['headers']>
  body: Parsed<E['body']>
}

/** What a handler returns; the schema is applied to it before it is sent. */
export type ResponseOf<E extends Endpoint> = z.input<E['response']>

/** What the client takes: only the parts that the endpoint has. Headers can be left out, and a query that requires nothing. */
export type InputOf<E extends Endpoint> = {
  [Part in 'params' | 'body' as E[Part] extends z.ZodType ? Part : never]: Sent<E[Part]>
} & (E['headers'] extends z.ZodType ? { headers?: Sent<E['headers']> } : unknown) &
  QueryInput<E['query']>

type QueryInput<Schema> = Schema extends z.ZodType
  ? Partial<Sent<Schema>> extends Sent<Schema>
    ? { query?: Sent<Schema> }
    : { query: Sent<Schema> }
  : unknown

/** Errors that any request can get, because they are found before its endpoint is. */
export const errorsOfAnyRequest = [
  'invalid_request',
  'request_timeout',
  'url_too_long',
  'headers_too_large',
] as const satisfies readonly ErrorCode[]

/** All errors of an endpoint: its own and those of its shape (docs/specification/errors.md#statuses-by-endpoint). */
export function errorsOf(endpoint: Endpoint): ErrorCode[] {
  const takesBody = endpoint.method !== 'GET'
  return [
    ...(endpoint.body ? (['invalid_json', 'invalid_content_type'] as const) : []),
    ...guardErrorsOf(endpoint),
    ...(takesBody ? (['request_too_large'] as const) : []),
    ...schemaErrorsOf(endpoint),
    ...(endpoint.isIdempotent
      ? (['idempotency_in_progress', 'idempotency_key_reused'] as const)
      : []),
    // The calls of an organization that wait for the database are limited.
    ...(endpoint.dialect === 'admin' && endpoint.permission ? (['overloaded'] as const) : []),
    ...(endpoint.managed === 'change' ? (['managed_elsewhere'] as const) : []),
    ...endpoint.errors,
    'internal_error',
    ...(endpoint.permission ? (['dependency_unavailable'] as const) : []),
  ]
}

/** Schema violations are 422 in administration and count_tokens, and 400 in inference. */
function schemaErrorsOf({ params, query, headers, body, dialect }: Endpoint): ErrorCode[] {
  if (body && dialect === 'count_tokens') return ['invalid_request', 'invalid_parameter']
  if (body && dialect !== 'admin') return ['invalid_request']
  const needsQuery = query?.safeParse({}).success === false
  return [
    ...(params || query || headers || body ? (['invalid_parameter'] as const) : []),
    ...(body ? (['unknown_field'] as const) : []),
    ...(body || needsQuery ? (['missing_field'] as const) : []),
  ]
}

function guardErrorsOf({
  method,
  isIdempotent,
  permission,
  credentials,
  dialect,
  takesFreeRequests,
}: Endpoint): ErrorCode[] {
  if (permission === null) return []
  const takesTokens = credentials.some((kind) => kind === 'jwt')
  const takesSessions = credentials.some((kind) => kind === 'session')
  return [
    'missing_credentials',
    'invalid_api_key',
    'expired_api_key',
    'revoked_api_key',
    ...(takesSessions ? (['invalid_session'] as const) : []),
    ...(takesSessions && method !== 'GET' ? (['cross_site_request'] as const) : []),
    ...(takesSessions && isIdempotent ? (['console_read_only'] as const) : []),
    ...(takesTokens
      ? (['invalid_token', 'expired_token', 'wrong_project', 'project_not_found'] as const)
      : []),
    ...(takesFreeRequests ? (['free_request_used'] as const) : []),
    ...(permission === 'any' ? [] : (['permission_denied'] as const)),
    'organization_suspended',
    'rate_limit_exceeded',
    ...(dialect === 'admin' ? (['concurrency_limit_exceeded'] as const) : []),
  ]
}
