import { EgressBlocked } from '#platform/egress-target.ts'

/** A call that failed. The message is one sentence without addresses, header values or answers. */
export class EgressFailed extends Error {
  override readonly name = 'EgressFailed'
  /** Whether TLS failed: the certificate was not accepted, or both sides could not agree. */
  readonly isCertificate: boolean
  /** The status of an answer with more than the caller wants to read; undefined if that is not what failed. */
  readonly statusOfTooLarge: number | undefined

  constructor(
    message: string,
    about: { isCertificate?: boolean; statusOfTooLarge?: number | undefined } = {},
  ) {
    super(message)
    this.isCertificate = about.isCertificate ?? false
    this.statusOfTooLarge = about.statusOfTooLarge
  }
}

const sentences = new Map([
  ['ECONNREFUSED', 'The destination refused the connection.'],
  ['ECONNRESET', 'The destination closed the connection.'],
  ['EPIPE', 'The destination closed the connection.'],
  ['UND_ERR_SOCKET', 'The destination closed the connection.'],
  ['ENOTFOUND', 'The host name could not be resolved.'],
  ['EAI_AGAIN', 'The host name could not be resolved.'],
  ['ETIMEDOUT', 'The destination could not be connected in time.'],
  ['UND_ERR_CONNECT_TIMEOUT', 'The destination could not be connected in time.'],
])

/** The names that OpenSSL and Node have for a certificate that was not accepted. */
const certificateCode = /CERT|SIGNATURE|ISSUER|HOSTNAME_MISMATCH|^INVALID_|PATH_LENGTH|CRL/
const handshakeCode = /^(?:ERR_SSL_|ERR_TLS_|EPROTO$)/

/** Errors of libraries contain addresses and parts of the answer: only their code is passed on. */
export function explainFailure(error: unknown): EgressBlocked | EgressFailed {
  if (error instanceof EgressBlocked || error instanceof EgressFailed) return error
  const { name = 'unknown', code = name } = Object(error) as { name?: string; code?: string }
  const sentence = sentences.get(code)
  if (sentence) return new EgressFailed(sentence)
  // A server that asks for a certificate of ours or refuses our version is a failed handshake: its code names
  // certificates too, but it is not the destination's certificate that was refused.
  if (handshakeCode.test(code) && !code.startsWith('ERR_TLS_CERT')) {
    const message = `The TLS handshake with the destination failed (${code}).`
    return new EgressFailed(message, { isCertificate: true })
  }
  if (certificateCode.test(code)) {
    const message = `The certificate of the destination was not accepted (${code}).`
    return new EgressFailed(message, { isCertificate: true })
  }
  return new EgressFailed(`The call to the destination failed (${code}).`)
}
