import { PolicyHeaders } from '@gatehouse/contract/policy-gateway/policy-headers'

import type { Principal } from '#http/principal.ts'
import { ApiError } from '#platform/api-error.ts'

/** Who and what a call is made for, as the configuration of the policy gateway sees it. */
export type PolicySubject = {
  /** The header X-Policy-User. */
  readonly user: string | null
  /** The header X-Policy-Target. */
  readonly target: string | null
  /** The subject of rollouts and quotas: the user that the call names, otherwise the subject of the credential. */
  readonly subject: string
}

type Headers = Readonly<Record<string, unknown>>
type ReadSubject = { policySubject: PolicySubject; error: ApiError | null }

const { 'X-Policy-User': User, 'X-Policy-Target': Target } = PolicyHeaders.shape

/**
 * Reads the policy headers of a call. Its project was checked together with the credential. Errors are returned and not thrown:
 * the attempt is counted first, as if it had no policy headers. Anonymous callers belong to no organization that could have a
 * configuration.
 */
export function readPolicySubject(headers: Headers, { kind, subject }: Principal): ReadSubject {
  const [user, target] = [headers['x-policy-user'], headers['x-policy-target']]
  const none = { user: null, target: null, subject }
  if (kind === 'anonymous' || (user === undefined && target === undefined)) {
    return { policySubject: none, error: null }
  }
  const [readUser, readTarget] = [User.safeParse(user), Target.safeParse(target)]
  if (!readUser.success) return { policySubject: none, error: malformed('X-Policy-User') }
  if (!readTarget.success) return { policySubject: none, error: malformed('X-Policy-Target') }
  const [named = null, label = null] = [readUser.data, readTarget.data]
  return { policySubject: { user: named, target: label, subject: named ?? subject }, error: null }
}

const malformed = (name: string) =>
  new ApiError(
    'invalid_request',
    `The header ${name} must be 1 to 200 printable ASCII characters.`,
    { param: `header.${name}` },
  )
