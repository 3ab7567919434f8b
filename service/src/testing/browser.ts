import type { FastifyInstance } from 'fastify'

export const publicUrl = 'https://gateway.example.com'

type Sent = {
  form?: Record<string, string>
  body?: object
  headers?: Record<string, string>
}

const ownPage = { 'sec-fetch-site': 'same-origin', origin: publicUrl }

/** A browser with one jar of cookies, which sends what browsers send from a page of the gateway. */
export function openBrowser(app: FastifyInstance) {
  const jar = new Map<string, string>()
  async function send(method: 'GET' | 'POST' | 'PUT' | 'DELETE', url: string, sent: Sent = {}) {
    const { form, body, headers } = sent
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const type = form
      ? 'application/x-www-form-urlencoded'
      : body && 'application/json; charset=utf-8'
    const response = await app.inject({
      method,
      url,
      headers: {
        ...ownPage,
        ...(cookie !== '' && { cookie }),
        ...(type && { 'content-type': type }),
        ...headers,
      },
      ...(form && { payload: new URLSearchParams(form).toString() }),
      ...(body && { payload: JSON.stringify(body) }),
    })
    const setCookies = [response.headers['set-cookie'] ?? []].flat()
    for (const set of setCookies) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
      if (/; Max-Age=0(;|$)/.test(set)) jar.delete(name)
      else jar.set(name, value)
    }
    const { statusCode: status, body: text } = response
    return { status, text, headers: response.headers, setCookies }
  }
  return {
    jar,
    get: (url: string, sent?: Sent) => send('GET', url, sent),
    post: (url: string, sent?: Sent) => send('POST', url, sent),
    send,
  }
}
export type Browser = ReturnType<typeof openBrowser>

/** The token that a page of the gateway has in its form. */
export const csrfIn = (page: string) => /name="csrf" value="([^"]+)"/.exec(page)?.[1] ?? ''
