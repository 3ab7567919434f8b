import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

import { CompactSign, type CryptoKey, exportJWK, exportSPKI, generateKeyPair, type JWK } from 'jose'

import { type Clock, toSeconds } from '#platform/clock.ts'

export const algorithms = ['EdDSA', 'ES256', 'RS256', 'PS256'] as const
type Algorithm = (typeof algorithms)[number]

/** How the server of the key list behaves. */
type Behaviour = 'answers' | 'fails' | 'hangs up' | 'hangs' | 'talks nonsense'

/** How a token differs from a valid one. A claim or header member that is undefined is left out. */
type Defects = {
  alg?: Algorithm | 'HS256' | 'none'
  header?: Record<string, unknown>
  /** Replaces claims after signing, so that the signature no longer fits. */
  tampered?: Record<string, unknown>
  /** How many characters of the signature are missing. */
  cut?: number
}

type SigningKey = { kid: string; privateKey: CryptoKey; publicKey: CryptoKey; jwk: JWK }

/** A token issuer that serves its public keys over a socket; `become` changes its behaviour. */
export async function createIssuerDouble(now: Clock) {
  const keys = new Map<Algorithm, SigningKey>()
  let kidsMade = 0
  let behaviour: Behaviour = 'answers'
  let requests = 0

  async function makeKey(alg: Algorithm) {
    const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
    const kid = `key-${++kidsMade}`
    const jwk = { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' }
    keys.set(alg, { kid, privateKey, publicKey, jwk })
  }
  await Promise.all(algorithms.map(makeKey))

  const server = createServer((_, response) => {
    requests++
    answer(behaviour, response, [...keys.values()])
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const issuer = `http://${host}/`

  async function signer(alg: Algorithm | 'HS256') {
    const { kid, privateKey, publicKey } = keys.get(alg === 'HS256' ? 'RS256' : alg)!
    // Algorithm confusion: the public key used as if it were a shared secret.
    const secret = alg === 'HS256' && Buffer.from(await exportSPKI(publicKey))
    return { kid, key: secret || privateKey }
  }

  return {
    host,
    issuer,
    audience: 'gatehouse',
    jwksUrl: `${issuer}keys.json`,
    /** How often the key list was requested. */
    requests: () => requests,
    become(next: Behaviour) {
      behaviour = next
    },
    /** Replaces a key: the next tokens carry a key id that the service has not seen. */
    rotate: () => makeKey('EdDSA'),
    /** A token for the subject `user-1`, valid for five minutes unless it has defects. */
    async sign(claims: Record<string, unknown>, defects: Defects = {}): Promise<string> {
      const { alg = 'EdDSA' } = defects
      const iat = toSeconds(now())
      const valid = { iss: issuer, aud: 'gatehouse', sub: 'user-1', iat, exp: iat + 300 }
      const all = { ...valid, ...claims }
      if (alg === 'none') return `${encode({ alg, typ: 'JWT', ...defects.header })}.${encode(all)}.`
      const { kid, key } = await signer(alg)
      const token = await new CompactSign(Buffer.from(JSON.stringify(all)))
        .setProtectedHeader(withoutAbsent({ alg, kid, typ: 'JWT', ...defects.header }))
        .sign(key, { crit: { rule: true } })
      const [header, payload, signature = ''] = token.split('.')
      return [
        header,
        defects.tampered ? encode({ ...all, ...defects.tampered }) : payload,
        signature.slice(0, signature.length - (defects.cut ?? 0)),
      ].join('.')
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
export type IssuerDouble = Awaited<ReturnType<typeof createIssuerDouble>>

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

function withoutAbsent({ alg, ...members }: { alg: string } & Record<string, unknown>) {
  const present = Object.entries(members).filter(([, value]) => value !== undefined)
  return { alg, ...Object.fromEntries(present) }
}

function answer(behaviour: Behaviour, response: ServerResponse, keys: readonly SigningKey[]) {
  switch (behaviour) {
    case 'hangs':
      return
    case 'hangs up':
      response.destroy()
      return
    case 'fails':
      response.writeHead(500).end('{"error":"maintenance"}')
      return
    case 'talks nonsense':
      response.end('{"error":"maintenance"}')
      return
    case 'answers':
      response.end(JSON.stringify({ keys: keys.map(({ jwk }) => jwk) }))
  }
}
