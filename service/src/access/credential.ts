import type { CredentialKind, Endpoint } from '@gatehouse/contract/endpoint'
import type { FastifyRequest } from 'fastify'

import { hasKeyShape } from './secret.ts'
import { unauthorized } from './unauthorized.ts'

export type Credential = { kind: CredentialKind; text: string }

const tokenShape = /^[\w-]{1,2000}\.[\w-]{1,8000}\.[\w-]{1,2000}$/

const nameOf: Record<CredentialKind, string> = {
  admin_key: 'an administrator key (gate_adm_...)',
  project_key: 'a project API key (gate_prj_...)',
  jwt: 'a token of a configured issuer',
}

/**
 * Finds the credential of a call and tells its kind by its form (G5.5). `Authorization` alone counts
 * when it is there, even if it is wrong; only then `x-api-key`, which never carries a token (G5.13).
 */
export function readCredential(endpoint: Endpoint, { headers }: FastifyRequest): Credential {
  const { authorization } = headers
  const apiKey = takesProjectKeys(endpoint) ? headers['x-api-key'] : undefined
  const text = authorization === undefined ? apiKey?.toString() : bearerOf(authorization.trim())
  const accepted = endpoint.credentials.map((kind) => nameOf[kind]).join(' or ')
  if (text === undefined) {
    const code = authorization === undefined ? 'missing_credentials' : 'invalid_api_key'
    throw unauthorized(endpoint, code, `Send Authorization: Bearer with ${accepted}.`)
  }
  const kind = kindOf(text, authorization !== undefined)
  if (!kind || !endpoint.credentials.some((each) => each === kind)) {
    throw unauthorized(endpoint, 'invalid_api_key', `This endpoint takes ${accepted}.`)
  }
  if (kind !== 'jwt' && !hasKeyShape(text)) {
    throw unauthorized(endpoint, 'invalid_api_key', 'The key is mistyped or incomplete.')
  }
  return { kind, text }
}

const takesProjectKeys = (endpoint: Endpoint) =>
  endpoint.credentials.some((kind) => kind === 'project_key')

const bearerOf = (header: string) => /^bearer +(\S+)$/i.exec(header)?.[1]

function kindOf(text: string, mayBeToken: boolean): CredentialKind | undefined {
  if (text.startsWith('gate_adm_')) return 'admin_key'
  if (text.startsWith('gate_prj_')) return 'project_key'
  return mayBeToken && tokenShape.test(text) ? 'jwt' : undefined
}
