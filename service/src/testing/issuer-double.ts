import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

import { CompactSign, type CryptoKey, exportJWK, exportSPKI, generateKeyPair, type JWK } from 'jose'

import { type Clock, toSeconds } from '#platform/clock.ts'

export const algorithms = ['EdDSA', 'ES256', 'RS256', 'PS256'] as const
type Algorithm = (typeof algorithms)[number]

/** What the address of the key list does when it is asked. */
type Mood = 'answers' | 'fails' | 'hangs up' | 'hangs' | 'talks nonsense'

/** How a token differs from a right one. A claim or header member that is undefined is left out. */
type Bent = {
  alg?: Algorithm | 'HS256' | 'none'
  header?: Record<string, unknown>
  /** Replaces claims after signing, so that the signature no longer fits. */
  tampered?: Record<string, unknown>
  /** How many characters of the signature are missing. */
  cut?: number
}

type SigningKey = { kid: string; privateKey: CryptoKey; publicKey: CryptoKey; jwk: JWK }

/** An issuer of tokens that serves its public keys over a socket, and does as it is told. */
export async function createIssuerDouble(now: Clock) {
  const keys = new Map<Algorithm, SigningKey>()
  let kidsMade = 0
  let mood: Mood = 'answers'
  let asked = 0

  async function makeKey(alg: Algorithm) {
    const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
    const kid = `key-${++kidsMade}`
    const jwk = { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' }
    keys.set(alg, { kid, privateKey, publicKey, jwk })
  }
  await Promise.all(algorithms.map(makeKey))

  const server = createServer((_, response) => {
    asked++
    answerIn(mood, response, [...keys.values()])
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const issuer = `http://${host}/`

  async function signer(alg: Algorithm | 'HS256') {
    const { kid, privateKey, publicKey } = keys.get(alg === 'HS256' ? 'RS256' : alg)!
    // The oldest trick: what everybody may know, used as if it were a shared secret.
    const secret = alg === 'HS256' && Buffer.from(await exportSPKI(publicKey))
    return { kid, key: secret || privateKey }
  }

  return {
    host,
    issuer,
    audience: 'gatehouse',
    jwksUrl: `${issuer}keys.json`,
    /** How often the key list was asked for. */
    asked: () => asked,
    become(next: Mood) {
      mood = next
    },
    /** Replaces a key: the next tokens carry a key id that nobody has seen. */
    rotate: () => makeKey('EdDSA'),
    /** The subject `user-1` for five minutes, right in every way unless it is bent. */
    async sign(claims: Record<string, unknown>, bent: Bent = {}): Promise<string> {
      const { alg = 'EdDSA' } = bent
      const iat = toSeconds(now())
      const right = { iss: issuer, aud: 'gatehouse', sub: 'user-1', iat, exp: iat + 300 }
      const all = { ...right, ...claims }
      if (alg === 'none') return `${encode({ alg, typ: 'JWT', ...bent.header })}.${encode(all)}.`
      const { kid, key } = await signer(alg)
      const token = await new CompactSign(Buffer.from(JSON.stringify(all)))
        .setProtectedHeader(withoutAbsent({ alg, kid, typ: 'JWT', ...bent.header }))
        .sign(key, { crit: { rule: true } })
      const [header, payload, signature = ''] = token.split('.')
      return [
        header,
        bent.tampered ? encode({ ...all, ...bent.tampered }) : payload,
        signature.slice(0, signature.length - (bent.cut ?? 0)),
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

function answerIn(mood: Mood, response: ServerResponse, keys: readonly SigningKey[]) {
  switch (mood) {
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
