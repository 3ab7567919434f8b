import { AuthorizationResponseError, ClientError, ResponseBodyError } from 'openid-client'

import { SignInRefused } from '#sign-in/sign-in-refused.ts'

type Issue = { claim?: unknown; parameters?: unknown; attribute?: unknown }

/** What an error of the protocol's library means for the person, and who can do something about it. */
export function explainProtocolError(error: unknown): SignInRefused {
  if (error instanceof SignInRefused) return error
  if (error instanceof AuthorizationResponseError) {
    const reason = isAway(error.error) ? 'provider_unavailable' : 'provider_refused'
    return new SignInRefused(reason, { cause: error })
  }
  if (error instanceof ResponseBodyError)
    return new SignInRefused(reasonOfBody(error), { cause: error })
  return new SignInRefused(reasonOfClient(error), { cause: error })
}

const isAway = (code: string) => code === 'temporarily_unavailable' || code === 'server_error'

function reasonOfBody({ error, status }: ResponseBodyError) {
  if (error === 'invalid_grant') return 'code_refused'
  return status >= 500 || isAway(error) ? 'provider_unavailable' : 'client_refused'
}

function reasonOfClient(error: unknown) {
  if (!(error instanceof ClientError)) return 'provider_unavailable'
  const { code, cause } = error
  const message = cause instanceof Error ? cause.message : ''
  const issue = (cause instanceof Error ? cause.cause : cause) as Issue | undefined
  switch (code) {
    case 'OAUTH_JWT_TIMESTAMP_CHECK_FAILED':
      return 'clocks_apart'
    case 'OAUTH_JWT_CLAIM_COMPARISON_FAILED':
      return issue?.claim === 'nonce' ? 'wrong_nonce' : 'bad_token'
    case 'OAUTH_INVALID_RESPONSE':
      if (message.includes('"nonce"')) return 'wrong_nonce'
      // Of the answer that the browser has brought.
      if (message.includes('"iss"') && issue?.parameters) return 'wrong_provider'
      if (message.includes('"state"') && issue?.parameters) return 'wrong_state'
      return 'bad_token'
    case 'OAUTH_RESPONSE_IS_NOT_CONFORM':
    case 'OAUTH_RESPONSE_IS_NOT_JSON':
    case 'OAUTH_PARSE_ERROR':
    case 'OAUTH_TIMEOUT':
      return 'provider_unavailable'
    default:
      // Everything that the library checks has a code; what has none is a request that failed.
      return code?.startsWith('OAUTH_') ? 'bad_token' : 'provider_unavailable'
  }
}
