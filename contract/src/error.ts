/** The closed list of error types in the administration body. */
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

const entry = (status: number, type: ErrorType, meaning: string): Entry => {
  return { status, type, meaning }
}
const invalid = (status: number, meaning: string) => entry(status, 'validation_error', meaning)
const auth = (meaning: string) => entry(401, 'auth_error', meaning)
const denied = (meaning: string) => entry(403, 'permission_error', meaning)
const notFound = (meaning: string) => entry(404, 'not_found_error', meaning)
const conflict = (meaning: string) => entry(409, 'conflict_error', meaning)
const internal = (status: number, meaning: string) => entry(status, 'internal_error', meaning)
const provider = (status: number, meaning: string) => entry(status, 'provider_error', meaning)

/**
 * Every error that a caller can get, by its stable code (docs/specification/errors.md#codes). A code has one
 * status and one type; an error that is not listed here cannot be thrown.
 */
export const errors = {
  invalid_json: invalid(
    400,
    'The body is not valid JSON, is nested deeper than 64 levels, has more than 100,000 values, repeats a member, or has a member with a forbidden name. Correct the body and send it again.',
  ),
  invalid_content_type: invalid(
    400,
    'The body is not declared as JSON, or is compressed. Send it uncompressed with Content-Type: application/json.',
  ),
  invalid_cursor: invalid(
    400,
    'The cursor `after` is not an item of this list. Use the last_id of a page of the same list.',
  ),
  invalid_request: invalid(
    400,
    'The request is not valid HTTP, or its headers or its body are not valid for this operation. The message and `param` say what to correct.',
  ),
  upstream_rejected: invalid(
    400,
    "The model provider refused the request. The message is the provider's own, unless moderation or a policy does not let it pass: correct the request accordingly.",
  ),
  invalid_signature: invalid(
    400,
    'The event is not signed with a secret of this webhook, or was signed more than five minutes ago. Check STRIPE_WEBHOOK_SECRETS and the clock of the server.',
  ),
  missing_input: invalid(
    400,
    'The request has neither `input` nor `instructions`. Send one of them.',
  ),
  unsupported_parameter: invalid(
    400,
    'The parameter asks for something that the gateway does not support. The message says what to send instead.',
  ),
  unsupported_context_edit: invalid(
    400,
    'The context edit is not supported. The message names the supported one.',
  ),
  moderation_blocked: entry(
    400,
    'moderation_error',
    'The content belongs to a blocked category. A blocked request costs nothing; a blocked answer is charged for what was generated. Change the content.',
  ),
  policy_blocked: entry(
    400,
    'policy_error',
    "One of the organization's enforcing policies refused the request, or ended the answer. A blocked request costs nothing; a blocked answer is charged for what was generated. The member `policy` names the policy. Change the request: repeating it would be refused again.",
  ),
  invalid_image: entry(
    400,
    'media_error',
    'The image is not a JPEG, PNG, GIF or WebP, or its first bytes do not fit its media type. Correct the media type, or send another image.',
  ),
  missing_credentials: auth(
    'The request has no credential. Send Authorization: Bearer followed by your key.',
  ),
  invalid_api_key: auth(
    'The key is mistyped, unknown, or of the wrong kind for this endpoint. Check that it was copied completely; the message says which kind the endpoint takes.',
  ),
  expired_api_key: auth('The key has expired. Create a new one.'),
  revoked_api_key: auth(
    'The key was revoked, its project was archived, or the person whom it belongs to is suspended or has left. Use another key or create a new one.',
  ),
  invalid_token: auth(
    'The token is not signed by a configured issuer, or lacks a required claim. Obtain another one, or have the operator check JWT_ISSUERS.',
  ),
  expired_token: auth('The token has expired. Obtain a new one from its issuer.'),
  invalid_session: auth('The session has ended or is not known. Sign in again.'),
  free_request_used: auth(
    'The one free request of your network has been used. Sign up to continue.',
  ),
  insufficient_credits: entry(
    402,
    'billing_error',
    'The balance does not cover the highest possible cost of this call. Add credits, or allow fewer output tokens.',
  ),
  budget_exceeded: entry(
    402,
    'billing_error',
    'The monthly budget of your organization, project or key does not cover the highest possible cost of this call. Wait for the next month, or have an administrator raise the budget.',
  ),
  cross_site_request: denied(
    'A browser sent its session with a change, but not from a page of this gateway, or without the token in x-gatehouse-csrf. Send the token that GET /v1/organization/me returns, from a page of PUBLIC_URL.',
  ),
  console_read_only: denied(
    'The operator of this gateway lets sessions read only (CONSOLE=read_only). Make the change with an administrator key, or where your organization keeps its configuration.',
  ),
  permission_denied: denied(
    'The credential lacks the permission that this operation needs, or a permission that it would grant. Use a credential that has it.',
  ),
  wrong_project: denied(
    'The header X-Policy-Project names another project than the key or the token does. Remove the header, or use a credential of that project.',
  ),
  organization_suspended: denied(
    'The organization is suspended. The operator of the gateway can reinstate it.',
  ),
  policy_not_found: notFound('No policy with this id exists in your organization.'),
  version_not_found: notFound(
    'The policy has no version with this number. Only the last 200 versions are kept.',
  ),
  history_entry_not_found: notFound(
    'The history of the policy gateway has no saved revision with this id. Only the last 50 are kept.',
  ),
  audit_event_not_found: notFound(
    'No audit event with this id exists in your organization, or it is older than the events that are kept.',
  ),
  export_not_found: notFound('No export sink with this id exists in your organization.'),
  guardrail_not_found: notFound('No guardrail with this id exists in your organization.'),
  member_not_found: notFound('Your organization, or the project, has no member with this id.'),
  session_not_found: notFound('The member has no session with this id, or it has ended.'),
  approval_not_found: notFound('You have given no approval with this id.'),
  proposal_not_found: notFound('No open proposal with this id exists in your organization.'),
  model_not_found: notFound(
    'The call names a model that does not exist here. GET /v1/models lists the models you can call; correct `model`.',
  ),
  unknown_model: notFound('No model has this id or alias. GET /v1/models lists the models.'),
  project_not_found: notFound(
    'No project with this id exists in your organization; for a token, no active one.',
  ),
  api_key_not_found: notFound(
    'No active key with this id exists in the project, or among the administrator keys.',
  ),
  webhook_not_configured: notFound(
    'This webhook has no signing secret. The operator sets STRIPE_WEBHOOK_SECRETS to use it.',
  ),
  route_not_found: notFound(
    'No endpoint has this path. /openapi.json lists all endpoints. If `/v1` is missing or doubled, correct the base URL of the client.',
  ),
  method_not_allowed: invalid(
    405,
    'The path exists, but not with this method. The Allow header lists its methods.',
  ),
  request_timeout: invalid(408, 'The request did not arrive in time. Send it again.'),
  proof_not_ready: conflict(
    'The event is not covered by a signed checkpoint yet. Checkpoints are signed once a minute by a worker that has AUDIT_SIGNING_KEYS; try again later.',
  ),
  revision_conflict: conflict(
    'The policy, the configuration of the policy gateway, or the settings of the organization have changed since you read them. Read them again and repeat your change with its current revision.',
  ),
  managed_elsewhere: conflict(
    'The object is managed by another set than the request is made for, or by none. The message says which. Change the object where it is managed, or repeat the request with take_over=true.',
  ),
  no_unpublished_changes: conflict(
    'The draft equals the published version, so there is nothing to publish. Edit the draft first.',
  ),
  policy_not_active: conflict('Only a policy that is monitoring or enforcing can be paused.'),
  policy_not_paused: conflict('Only a paused policy can be resumed.'),
  draft_not_publishable: conflict(
    'The draft names a project that is not active any more, its rule is not accepted any more, or the gateway could not enforce it. The message says which. Edit the draft.',
  ),
  examples_failing: conflict(
    'Some examples of the policy do not come out as they should with this draft. `failing` lists up to 20 of them by their index. Edit the draft or the examples, or publish with force and a reason.',
  ),
  policy_not_evaluable: conflict(
    'The rule cannot be evaluated here: it needs a judge model, which this gateway does not have, or it is not accepted any more. The message says which.',
  ),
  approval_required: conflict(
    'The organization asks for two persons: another member who may publish has to approve this first. Ask for an approval, or propose the change; an owner may break the glass with a reason.',
  ),
  approval_outdated: conflict(
    'What was approved or proposed has changed since. Have the current state approved, or propose the change again.',
  ),
  idempotency_in_progress: conflict(
    'A request with this Idempotency-Key is still running. Retry with the same key after the delay in Retry-After.',
  ),
  idempotency_key_reused: conflict(
    'This Idempotency-Key was used for a different request. Use a new key for each new request.',
  ),
  limit_reached: conflict(
    'The organization has as many of these as it may have. Remove one first.',
  ),
  guardrail_name_taken: conflict(
    'Another guardrail of the organization has this name. Choose another one.',
  ),
  member_email_taken: conflict(
    'Another member of the organization has this address. Change that member, or remove it first.',
  ),
  member_not_invited: conflict('Only a member who is `invited` has an invitation; see its status.'),
  last_owner: conflict(
    'This is the last active owner of the organization. Make another active member an owner first.',
  ),
  last_admin_key: conflict(
    'This is the last valid key that can manage administrator keys. Create another one first.',
  ),
  project_archived: conflict('The project is archived and cannot be changed. Use another project.'),
  default_project: conflict(
    'The default project cannot be archived, because tokens that name no project use it.',
  ),
  length_required: invalid(
    411,
    'This endpoint takes no chunked bodies. Send the body with a Content-Length.',
  ),
  request_too_large: invalid(
    413,
    'The body is larger than this endpoint accepts, or an anonymous request did not declare its length. Send a smaller body.',
  ),
  url_too_long: invalid(414, 'The URL is longer than 8 KiB. Send a shorter one.'),
  invalid_parameter: invalid(
    422,
    'The value of a parameter is not allowed. `param` names the parameter, the message its rule.',
  ),
  unknown_field: invalid(
    422,
    'The body has a member that this endpoint does not know. Remove the member that `param` names, or correct its spelling.',
  ),
  missing_field: invalid(422, 'A required member is missing. Send the member that `param` names.'),
  invalid_scope: invalid(
    422,
    'scope and project_ids do not fit together. The scope `projects` needs 1 to 1000 project ids, the other scopes take none.',
  ),
  unknown_project: invalid(
    422,
    'The body names a project that your organization does not have, or that is archived. Remove the id that `param` names.',
  ),
  type_immutable: invalid(
    422,
    'The type of an export sink cannot be changed. Create a new sink instead.',
  ),
  invalid_export_config: invalid(
    422,
    'The configuration of the export sink has a value that is not allowed, contradicts itself, or leads to an address that may not be called. `param` names the member, the message its rule.',
  ),
  invalid_gateway_config: invalid(
    422,
    'The configuration of the policy gateway contradicts itself. `param` names the member, the message its rule.',
  ),
  rate_limit_exceeded: entry(
    429,
    'rate_limit_error',
    'Too many requests or tokens. Wait for the time in Retry-After plus a small random delay.',
  ),
  concurrency_limit_exceeded: entry(
    429,
    'rate_limit_error',
    'Too many requests at the same time. Wait until one has finished.',
  ),
  quota_exceeded: entry(
    429,
    'rate_limit_error',
    'A quota that the organization has set for itself is used up.',
  ),
  headers_too_large: invalid(431, 'The request headers are larger than 16 KiB. Send fewer.'),
  internal_error: internal(
    500,
    'The gateway failed unexpectedly. Retry; if it fails again, report the request id to the operator.',
  ),
  upstream_error: provider(502, 'The model provider failed or refused the gateway. Retry later.'),
  dependency_unavailable: internal(
    503,
    'The database, or another service that this request needs, cannot be reached. Retry after the delay in Retry-After, and repeat a change with the same Idempotency-Key: it may have been made.',
  ),
  credit_balance_unavailable: internal(
    503,
    'The balance cannot be read at the moment. Retry after the delay in Retry-After.',
  ),
  policy_evaluation_unavailable: internal(
    503,
    "The organization's policies could not be evaluated, so the request was refused, or the answer was ended. A refused request costs nothing; whether an ended answer is charged is in the message. Retry after the delay in Retry-After.",
  ),
  upstream_timeout: provider(504, 'The model provider did not answer in time. Retry later.'),
  overloaded: internal(
    529,
    'The gateway or the model provider has too much work at the moment. Retry after the delay in Retry-After.',
  ),
} as const satisfies Record<string, Entry>
export type ErrorCode = keyof typeof errors

export const errorCodes = Object.keys(errors) as ErrorCode[]
