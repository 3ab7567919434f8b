import type { CredentialKind, Endpoint } from '@gatehouse/contract/endpoint'
import { methodsAt } from '@gatehouse/contract/endpoints'
import type { FastifyRequest } from 'fastify'

import { hasKeyShape } from './secret.ts'
import { unauthorized } from './unauthorized.ts'

export type Credential = { kind: CredentialKind; text: string }

const tokenShape = /^[\w-]{1,2000}\.[\w-]{1,8000}\.[\w-]{1,2000}$/

const kindNames: Record<CredentialKind, string> = {
  admin_key: 'an administrator key (gate_adm_...)',
  project_key: 'a project API key (gate_prj_...)',
  jwt: 'a token of a configured issuer',
}

/**
 * Reads the credential of a request and detects its kind. `x-api-key` is read only when there is no
 * `Authorization` header, not even a malformed one, and never carries a token.
 */
export function readCredential(endpoint: Endpoint, { headers }: FastifyRequest): Credential {
  const { authorization } = headers
  const apiKey = takesProjectKeys(endpoint) ? headers['x-api-key'] : undefined
  const text = authorization === undefined ? apiKey?.toString() : readBearer(authorization.trim())
  if (text === undefined) {
    const code = authorization === undefined ? 'missing_credentials' : 'invalid_api_key'
    throw unauthorized(
      endpoint,
      code,
      `Send Authorization: Bearer followed by ${nameAccepted(endpoint)}.`,
    )
  }
  const kind = detectKind(text, authorization !== undefined)
  if (!kind || !endpoint.credentials.some((each) => each === kind)) {
    const advice = kind === 'admin_key' ? adviseAdministrator(endpoint) : ''
    const message = `This endpoint takes ${nameAccepted(endpoint)}${advice}.`
    throw unauthorized(endpoint, 'invalid_api_key', message)
  }
  if (kind !== 'jwt' && !hasKeyShape(text)) {
    throw unauthorized(
      endpoint,
      'invalid_api_key',
      'The key is mistyped or incomplete; copy it again.',
    )
  }
  return { kind, text }
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

const takesProjectKeys = (endpoint: Endpoint) =>
  endpoint.credentials.some((kind) => kind === 'project_key')

const readBearer = (header: string) => /^bearer +(\S+)$/i.exec(header)?.[1]

function detectKind(text: string, mayBeToken: boolean): CredentialKind | undefined {
  if (text.startsWith('gate_adm_')) return 'admin_key'
  if (text.startsWith('gate_prj_')) return 'project_key'
  return mayBeToken && tokenShape.test(text) ? 'jwt' : undefined
}
