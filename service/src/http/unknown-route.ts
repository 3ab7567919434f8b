import { dialectOfPath, endpoints, methodsAt } from '@gatehouse/contract/endpoints'
import { pages } from '@gatehouse/contract/pages/pages'

import { ApiError } from '#platform/api-error.ts'

/** The 405 or 404 for a path without a matching route; a 404 says what is wrong with the client's base URL. */
export function unknownRoute(path: string): ApiError {
  const methods = methodsAt(path, [...endpoints, ...pages]).flatMap((method) =>
    method === 'GET' ? ['GET', 'HEAD'] : method,
  )
  if (methods.length === 0) return new ApiError('route_not_found', explainPath(path))
  const allow = methods.join(', ')
  return new ApiError('method_not_allowed', `This path can only be called with ${allow}.`, {
    headers: { allow },
  })
}

const pathMaxLength = 100

/** Clients differ in whether their base URL includes `/v1`, so it is often missing or doubled. */
function explainPath(path: string): string {
  const shown = path.slice(0, pathMaxLength)
  if (exists(`/v1${path}`)) {
    const isAdmin = dialectOfPath(`/v1${path}`) === 'admin'
    const advice = isAdmin ? `call '/v1${shown}'` : "set the client's base URL to https://<host>/v1"
    return `The path '${shown}' lacks '/v1': ${advice}.`
  }
  const once = path.replace(/^(?:\/v1){2,}\//, '/v1/')
  if (once !== path && exists(once)) {
    return `The path '${shown}' has '/v1' more than once: set the client's base URL to ${baseUrlFor(once)}.`
  }
  return 'There is no endpoint with this path; /openapi.json lists all endpoints.'
}

const exists = (path: string) => methodsAt(path).length > 0

/** Anthropic's clients add `/v1` to the base URL, OpenAI's expect it there. */
const baseUrlFor = (path: string) =>
  path.startsWith('/v1/messages')
    ? "https://<host>, because the client adds '/v1' itself"
    : "https://<host>/v1, or to https://<host> if the client adds '/v1' itself"
