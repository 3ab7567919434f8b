/** The closed list of error families in the administration body (contract 7.1). */
export const errorTypes = [
  'auth_error',
  'permission_error',
  'validation_error',
  'rate_limit_error',
  'billing_error',
  'moderation_error',
  'policy_error',
  'media_error',
  'not_found_error',
  'conflict_error',
  'provider_error',
  'internal_error',
] as const
export type ErrorType = (typeof errorTypes)[number]

type Entry = {
  readonly status: number
  readonly type: ErrorType
  /** What happened and what to do about it; printed into docs/errors.md. */
  readonly meaning: string
}

const entry = (status: number, type: ErrorType, meaning: string): Entry => ({
  status,
  type,
  meaning,
})
const invalid = (status: number, meaning: string) => entry(status, 'validation_error', meaning)
const auth = (meaning: string) => entry(401, 'auth_error', meaning)
const notFound = (meaning: string) => entry(404, 'not_found_error', meaning)
const conflict = (meaning: string) => entry(409, 'conflict_error', meaning)
const internal = (status: number, meaning: string) => entry(status, 'internal_error', meaning)
const provider = (status: number, meaning: string) => entry(status, 'provider_error', meaning)

/**
 * Every error a caller can meet, by its stable code (decisions, table 7.A and docs/decisions). A code
 * has one status and one type; an error that is not listed here cannot be thrown.
 */
export const errors = {
  invalid_json: invalid(
    400,
    'The body is not JSON, is nested deeper than 64 levels, repeats a member, or names a forbidden one. Send one well-formed JSON object.',
  ),
  invalid_content_type: invalid(
    400,
    'The body is not declared as JSON. Send Content-Type: application/json, uncompressed.',
  ),
  invalid_cursor: invalid(
    400,
    'The cursor names no item of this list. Use the last_id of a page of the same list.',
  ),
  invalid_request: invalid(400, 'The request cannot be understood as HTTP or as this operation.'),
  model_not_found: invalid(
    400,
    'No model has this id. GET /v1/models lists the models you can call.',
  ),
  upstream_rejected: invalid(
    400,
    "The model provider refused the request as it was sent; the message has the provider's own words.",
  ),
  invalid_signature: invalid(
    400,
    'The event is not signed with a secret of this webhook, or was signed more than five minutes ago.',
  ),
  missing_input: invalid(400, 'Neither input nor instructions were sent.'),
  unsupported_parameter: invalid(
    400,
    'The parameter asks for something this gateway does not offer.',
  ),
  unsupported_context_edit: invalid(400, 'The context edit is not one of the supported edits.'),
  moderation_blocked: entry(
    400,
    'moderation_error',
    'A content category that is blocked was found. Nothing was charged.',
  ),
  policy_blocked: entry(
    400,
    'policy_error',
    "One of the organization's enforcing policies matched. Nothing was charged.",
  ),
  invalid_image: entry(400, 'media_error', 'The image cannot be read or is too large.'),
  missing_credentials: auth(
    'No credential was sent. Send Authorization: Bearer followed by your key.',
  ),
  invalid_api_key: auth(
    'The key is mistyped, unknown, or of the wrong kind for this endpoint. Check that it was copied whole.',
  ),
  expired_api_key: auth('The key has expired. Create a new one.'),
  revoked_api_key: auth('The key was revoked, or its project archived. Create a new one.'),
  invalid_token: auth('The token is not signed by a configured issuer, or lacks a required claim.'),
  expired_token: auth('The token has expired. Obtain a new one from its issuer.'),
  free_request_used: auth('The one anonymous request has been used. Sign up to continue.'),
  insufficient_credits: entry(
    402,
    'billing_error',
    'The balance does not cover the worst case of this call. Add credits.',
  ),
  permission_denied: entry(
    403,
    'permission_error',
    'The credential lacks the permission that this operation needs, or would grant one it does not hold.',
  ),
  wrong_project: entry(403, 'permission_error', 'The credential belongs to another project.'),
  organization_suspended: entry(
    403,
    'permission_error',
    'The organization is suspended. Its operator can reinstate it.',
  ),
  policy_not_found: notFound('No policy with this id exists in your organization.'),
  version_not_found: notFound(
    'The policy has no such version, or it was pruned: the last 200 are kept.',
  ),
  export_not_found: notFound('No export sink with this id exists in your organization.'),
  unknown_model: notFound('No model has this id or alias. GET /v1/models lists them.'),
  project_not_found: notFound('No project with this id exists in your organization.'),
  api_key_not_found: notFound('No active key with this id exists at this place.'),
  webhook_not_configured: notFound(
    'This webhook has no signing secret. Set STRIPE_WEBHOOK_SECRETS to use it.',
  ),
  route_not_found: notFound('No endpoint has this path. /openapi.json lists them all.'),
  method_not_allowed: invalid(
    405,
    'The path exists, but not with this method. The Allow header lists the methods it has.',
  ),
  request_timeout: invalid(408, 'The request did not arrive in time. Send it again.'),
  revision_conflict: conflict(
    'The resource has changed since you read it. Read it again and repeat your change.',
  ),
  no_unpublished_changes: conflict('The draft equals the published version.'),
  policy_not_active: conflict('Only a policy that is monitoring or enforcing can be paused.'),
  policy_not_paused: conflict('Only a paused policy can be resumed.'),
  draft_not_publishable: conflict(
    'The draft refers to something that no longer exists, or its rule is not accepted any more. Edit the draft.',
  ),
  idempotency_in_progress: conflict(
    'A request with this Idempotency-Key is still running. Retry after the given delay.',
  ),
  idempotency_key_reused: conflict(
    'This Idempotency-Key was used for a different request. Use a new key for each new request.',
  ),
  limit_reached: conflict(
    'The organization has as many of these as it may have. Remove one first.',
  ),
  last_admin_key: conflict(
    'This is the last working key that can manage administrator keys. Create another one first.',
  ),
  project_archived: conflict('The project is archived and cannot be changed.'),
  default_project: conflict(
    'The default project serves callers that name no project and cannot be archived.',
  ),
  request_too_large: invalid(413, 'The body is larger than this endpoint accepts.'),
  url_too_long: invalid(414, 'The URL is longer than 8 KiB.'),
  invalid_parameter: invalid(422, 'The value of the named parameter is outside its bounds.'),
  unknown_field: invalid(422, 'The body has a member that this endpoint does not know.'),
  missing_field: invalid(422, 'A required member is missing.'),
  invalid_scope: invalid(422, 'scope and project_ids do not fit together.'),
  unknown_project: invalid(422, 'The body names a project that your organization does not have.'),
  type_immutable: invalid(422, 'The type of an export sink cannot be changed.'),
  invalid_export_config: invalid(422, 'The configuration does not fit the type of the sink.'),
  invalid_gateway_config: invalid(422, 'The gateway configuration contradicts itself.'),
  rate_limit_exceeded: entry(
    429,
    'rate_limit_error',
    'Too many requests or tokens. Wait for Retry-After, then add a small random delay.',
  ),
  concurrency_limit_exceeded: entry(
    429,
    'rate_limit_error',
    'Too many requests at once. Wait for one to finish.',
  ),
  quota_exceeded: entry(429, 'rate_limit_error', "A quota of the organization's own is used up."),
  headers_too_large: invalid(431, 'The request headers are larger than 16 KiB.'),
  internal_error: internal(500, 'Something failed on our side. Report the request id.'),
  upstream_error: provider(502, 'The model provider failed.'),
  dependency_unavailable: internal(
    503,
    'A store this request needs is away. Nothing was changed unless a retry says so; retry after the given delay, with the same Idempotency-Key.',
  ),
  credit_balance_unavailable: internal(503, 'The balance cannot be known at the moment.'),
  policy_evaluation_unavailable: internal(
    503,
    'An enforcing policy could not be evaluated, so the request was refused.',
  ),
  upstream_timeout: provider(504, 'The model provider did not answer in time.'),
  overloaded: internal(529, 'The gateway has more work than it can take. Retry later.'),
} as const satisfies Record<string, Entry>
export type ErrorCode = keyof typeof errors

export const errorCodes = Object.keys(errors) as ErrorCode[]
