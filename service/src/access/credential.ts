import type { CredentialKind, Endpoint } from '@gatehouse/contract/endpoint'
import { methodsAt } from '@gatehouse/contract/endpoints'
import type { FastifyRequest } from 'fastify'

import { hasKeyShape } from './secret.ts'
import { type BrowserAccess, readSessionCookie } from './sessions/session-cookie.ts'
import { unauthorized } from './unauthorized.ts'

export type Credential = {
  kind: CredentialKind
  text: string
  /** The session came as a cookie, which browsers send by themselves. */
  isCookie?: true
}

const tokenShape = /^[\w-]{1,2000}\.[\w-]{1,8000}\.[\w-]{1,2000}$/

const kindNames: Record<CredentialKind, string> = {
  admin_key: 'an administrator key (gate_adm_...)',
  project_key: 'a project API key (gate_prj_...)',
  jwt: 'a token of a configured issuer',
  session: 'a session (gate_ses_...)',
}

/**
 * Reads the credential of a request and detects its kind. `x-api-key` is read only when there is no
 * `Authorization` header, not even a malformed one, and never carries a token. The cookie of a session is read only when there
 * is neither, by endpoints that take sessions.
 */
export function readCredential(
  endpoint: Endpoint,
  request: FastifyRequest,
  browser: BrowserAccess | null,
): Credential {
  const { headers } = request
  const { authorization } = headers
  const apiKey = takes('project_key', endpoint) ? headers['x-api-key'] : undefined
  const text = authorization === undefined ? apiKey?.toString() : readBearer(authorization.trim())
  if (authorization === undefined && text === undefined && browser && takes('session', endpoint)) {
    const cookie = readSessionCookie(request, browser)
    if (cookie !== undefined) return readSessionSecret(endpoint, cookie)
  }
  if (text === undefined) {
    const code = authorization === undefined ? 'missing_credentials' : 'invalid_api_key'
    throw unauthorized(
      endpoint,
      code,
      `Send Authorization: Bearer followed by ${nameAccepted(endpoint)}.`,
    )
  }
  const kind = detectKind(text, authorization !== undefined)
  if (!kind || !takes(kind, endpoint)) {
    const advice = kind === 'admin_key' ? adviseAdministrator(endpoint) : ''
    const message = `This endpoint takes ${nameAccepted(endpoint)}${advice}.`
    throw unauthorized(endpoint, 'invalid_api_key', message)
  }
  if (kind === 'session') return readSession(endpoint, text)
  if (kind !== 'jwt' && !hasKeyShape(text)) {
    throw unauthorized(
      endpoint,
      'invalid_api_key',
      'The key is mistyped or incomplete; copy it again.',
    )
  }
  return { kind, text }
}

/** The secret of a cookie; null when the browser has sent several. */
const readSessionSecret = (endpoint: Endpoint, text: string | null): Credential => ({
  ...readSession(endpoint, text ?? ''),
  isCookie: true,
})

function readSession(endpoint: Endpoint, text: string): Credential {
  if (text.startsWith('gate_ses_') && hasKeyShape(text)) return { kind: 'session', text }
  throw unauthorized(endpoint, 'invalid_session', 'This is no session; sign in again.')
}

const nameAccepted = ({ credentials }: Endpoint) =>
  credentials.map((kind) => kindNames[kind]).join(' or ')

/** Some endpoints of model callers, such as GET /v1/models, have a counterpart for administrators. */
function adviseAdministrator({ method, path }: Endpoint): string {
  const counterpart = path.replace(/^\/v1\//, '/v1/organization/')
  return methodsAt(counterpart).includes(method)
    ? `; administrator keys use ${method} ${counterpart}`
    : ''
}

const takes = (kind: CredentialKind, { credentials }: Endpoint) =>
  credentials.some((each) => each === kind)

const readBearer = (header: string) => /^bearer +(\S+)$/i.exec(header)?.[1]

function detectKind(text: string, mayBeToken: boolean): CredentialKind | undefined {
  if (text.startsWith('gate_adm_')) return 'admin_key'
  if (text.startsWith('gate_prj_')) return 'project_key'
  if (text.startsWith('gate_ses_')) return 'session'
  return mayBeToken && tokenShape.test(text) ? 'jwt' : undefined
}
