import type { FastifyReply, FastifyRequest } from 'fastify'

/** The value of a cookie; undefined when there is none, null when there are several, of which one may be planted. */
export function readCookie({ headers }: FastifyRequest, name: string): string | null | undefined {
  const { cookie } = headers
  if (cookie === undefined) return undefined
  const start = `${name}=`
  const values = cookie
    .split(';')
    .map((each) => each.trim())
    .filter((each) => each.startsWith(start))
    .map((each) => each.slice(start.length))
  return values.length > 1 ? null : values[0]
}

type Cookie = {
  name: string
  value: string
  /** 0 removes it. */
  maxAgeSeconds: number
  isSecure: boolean
}

/** Sets a cookie that scripts cannot read, and that other sites make browsers send with links only. */
export function setCookie(reply: FastifyReply, { name, value, maxAgeSeconds, isSecure }: Cookie) {
  const secure = isSecure ? '; Secure' : ''
  const text = `${name}=${value}; Max-Age=${maxAgeSeconds}; Path=/; HttpOnly${secure}; SameSite=Lax`
  const earlier = reply.getHeader('set-cookie')
  const list = earlier === undefined ? [] : [earlier].flat().map(String)
  // Fastify would add to an earlier header by itself, but not replace it.
  reply.removeHeader('set-cookie')
  return reply.header('set-cookie', [...list, text])
}
