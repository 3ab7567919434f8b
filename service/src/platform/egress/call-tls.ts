import { createHash, X509Certificate } from 'node:crypto'
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls'

import { BoundedMap } from '#platform/bounded-map.ts'

import { EgressFailed } from './egress-failed.ts'
import type { ConnectionTls } from './guarded-connector.ts'

export type CallTls = {
  /** Certificates to trust besides the usual ones, in PEM. */
  ca?: string | undefined
  /** `false` accepts every certificate. The caller has checked that the operator allows it. */
  verify?: boolean | undefined
}

/** Equal for calls that may share a connection, and only for those. */
export const nameTls = ({ ca = '', verify = true }: CallTls): string =>
  `${verify ? 'verified' : 'unverified'} ${ca && createHash('sha256').update(ca).digest('hex')}`

/** A context with certificates of its own takes tens of milliseconds to make, and more than 1 MB. */
const contextsMax = 32

/** What a connection is opened with. The usual certificates include those of NODE_EXTRA_CA_CERTS. */
export function createTlsContexts(alwaysTrusted: readonly string[]) {
  const trusting = (ca: readonly string[]) =>
    createSecureContext(ca.length > 0 ? { ca: [...getCACertificates(), ...ca] } : {})
  const usual = trusting(alwaysTrusted)
  const contexts = new BoundedMap<string, SecureContext>(contextsMax)

  function findOrMake(ca: string): SecureContext {
    const context = contexts.get(ca) ?? trusting([...alwaysTrusted, ...readCertificates(ca)])
    contexts.set(ca, context)
    return context
  }
  return ({ ca, verify = true }: CallTls): ConnectionTls => ({
    secureContext: ca === undefined ? usual : findOrMake(ca),
    rejectUnauthorized: verify, // whatever NODE_TLS_REJECT_UNAUTHORIZED says
  })
}

const certificates = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/** Node ignores what it cannot read, and the call would fail later with a message about the destination. */
function readCertificates(pem: string): string[] {
  const found = pem.match(certificates) ?? []
  const begun = pem.split('-----BEGIN').length - 1
  if (found.length === 0 || found.length !== begun || !found.every(isCertificate)) {
    throw new EgressFailed('The certificates in ca_cert cannot be read.', { isCertificate: true })
  }
  return found
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0
  } catch {
    return false
  }
}
