import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

import { exportJWK, generateKeyPair } from 'jose'
import Provider, { type Adapter, type AdapterPayload, type Configuration } from 'oidc-provider'

/** What the provider says about its accounts; tests change it while it runs. */
export type Account = Record<string, unknown>

type Options = {
  redirectUris: readonly string[]
  backchannelLogoutUri?: string
  /** How the provider reaches the gateway, if not through the network. */
  deliver?: (url: string, form: string) => Promise<{ status: number; text: string }>
  accounts?: Record<string, Account>
  settings?: Configuration
}

export const clientId = 'gatehouse'
export const clientSecret = 'a-secret-that-only-the-two-of-them-know'

/**
 * A real provider of OpenID Connect on a socket, strict about PKCE, redirect URIs and codes. The account that signs in is
 * `current`, if that is set; otherwise it shows a form.
 */
export async function startProviderDouble(options: Options) {
  const accounts = new Map(Object.entries(options.accounts ?? {}))
  const state = { current: null as string | null, isAway: false, requests: 0 }
  let handle = (_: IncomingMessage, response: ServerResponse) => void response.end()
  const server = createServer((request, response) => {
    state.requests++
    if (state.isAway) request.socket.destroy()
    else handle(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const target = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const issuer = `http://${target}`
  const provider = new Provider(issuer, await configure(options, accounts))
  const callback = provider.callback()
  handle = (request, response) => {
    if (!request.url?.startsWith('/interaction/')) return void callback(request, response)
    void interact(provider, { request, response, current: state.current })
  }
  const stop = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  return { issuer, target, provider, accounts, state, stop }
}
export type ProviderDouble = Awaited<ReturnType<typeof startProviderDouble>>

const features: NonNullable<Configuration['features']> = {
  devInteractions: { enabled: false },
  backchannelLogout: { enabled: true },
  rpInitiatedLogout: {
    enabled: true,
    // Without a question: the person has just said so at the gateway.
    logoutSource: (context, form) => {
      const agreed = '<input type="hidden" name="logout" value="yes" /></form>'
      const all = form.replace('</form>', agreed)
      context.body = `<body>${all}<script>document.forms[0].submit()</script></body>`
    },
  },
}

async function configure(
  { redirectUris, backchannelLogoutUri, deliver, settings = {} }: Options,
  accounts: ReadonlyMap<string, Account>,
): Promise<Configuration> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  return {
    adapter: createAdapter(),
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: [...redirectUris],
        post_logout_redirect_uris: redirectUris.map(
          (each) => `${new URL(each).origin}/auth/sign_in`,
        ),
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        ...(backchannelLogoutUri && {
          backchannel_logout_uri: backchannelLogoutUri,
          backchannel_logout_session_required: true,
        }),
      },
    ],
    jwks: { keys: [{ ...(await exportJWK(privateKey)), kid: 'one', alg: 'RS256', use: 'sig' }] },
    cookies: { keys: ['a key of the double'] },
    pkce: { required: () => true },
    // As most providers do: what was asked for is in the token.
    conformIdTokenClaims: false,
    claims: {
      openid: ['sub', 'groups', 'roles', 'hd', 'hasgroups', '_claim_names'],
      email: ['email', 'email_verified'],
      profile: ['name'],
    },
    scopes: ['openid', 'offline_access', 'email', 'profile'],
    features,
    // Refresh tokens are given out without `prompt=consent`.
    issueRefreshToken: async (_, client, code) =>
      client.grantTypeAllowed('refresh_token') && code.scopes.has('offline_access'),
    rotateRefreshToken: true,
    findAccount: (_, id) => {
      const account = accounts.get(id)
      return account && { accountId: id, claims: async () => ({ ...account, sub: id }) }
    },
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    ...(deliver && {
      fetch: async (url: string | URL | Request, options?: RequestInit) => {
        const { body } = (options ?? {}) as { body?: unknown }
        const address = url instanceof Request ? url.url : String(url)
        const { status, text } = await deliver(address, String(body))
        return new Response(text, { status })
      },
    }),
    ttl: { Session: 3600, Grant: 3600, Interaction: 600, AccessToken: 600, IdToken: 600 },
    ...settings,
  }
}

/** Keeps everything in this process, as the one that comes with the provider, but does not warn about it. */
function createAdapter() {
  const rows = new Map<string, AdapterPayload>()
  return (kind: string): Adapter => {
    const find = (has: (row: AdapterPayload) => boolean) =>
      [...rows].find(([key, row]) => key.startsWith(`${kind}:`) && has(row))?.[1]
    return {
      upsert: async (id, row) => void rows.set(`${kind}:${id}`, row),
      find: async (id) => rows.get(`${kind}:${id}`),
      findByUid: async (uid) => find((row) => row.uid === uid),
      findByUserCode: async (code) => find((row) => row.userCode === code),
      async consume(id) {
        const row = rows.get(`${kind}:${id}`)
        if (row) row['consumed'] = Math.floor(Date.now() / 1000)
      },
      destroy: async (id) => void rows.delete(`${kind}:${id}`),
      async revokeByGrantId(grantId) {
        for (const [key, row] of rows) if (row.grantId === grantId) rows.delete(key)
      },
    }
  }
}

type Interaction = { request: IncomingMessage; response: ServerResponse; current: string | null }

/** Signs in and consents in one step: the account is the current one, or that of the form. */
async function interact(provider: Provider, { request, response, current }: Interaction) {
  const { prompt, params, session, grantId } = await provider.interactionDetails(request, response)
  const chosen = new URL(request.url ?? '', 'http://double').searchParams.get('account')
  const accountId = session?.accountId ?? current ?? chosen
  if (accountId === null) {
    response.setHeader('content-type', 'text/html')
    return void response.end(
      '<!doctype html><title>Sign in</title><form><input name="account" autofocus><button>Sign in</button></form>',
    )
  }
  if (accountId === 'refused') {
    return provider.interactionFinished(request, response, {
      error: 'access_denied',
      error_description: '<b>not you</b>',
    })
  }
  const known = grantId === undefined ? undefined : await provider.Grant.find(grantId)
  const grant = known ?? new provider.Grant({ accountId, clientId: String(params['client_id']) })
  grant.addOIDCScope(String(params['scope']))
  const result =
    prompt.name === 'login'
      ? { login: { accountId } }
      : { consent: { grantId: await grant.save() } }
  return provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true })
}

/**
 * Goes through the provider's pages as a browser does, with its cookies, until it sends the browser back to somewhere else.
 * Returns that address.
 */
export async function goThrough(
  { issuer }: Pick<ProviderDouble, 'issuer'>,
  start: URL,
  cookies = new Map<string, string>(),
): Promise<URL> {
  let url = start
  for (let steps = 0; steps < 20 && url.origin === issuer; steps++) {
    const answer = await fetch(url, {
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
    })
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === '') cookies.delete(name)
      else cookies.set(name, value)
    }
    const location = answer.headers.get('location')
    if (location === null)
      throw new Error(`the provider answered ${answer.status}: ${await answer.text()}`)
    url = new URL(location, url)
  }
  return url
}
