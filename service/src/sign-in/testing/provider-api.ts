import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import {
  type Account,
  clientId,
  clientSecret,
  goThrough,
  startProviderDouble,
} from '@gatehouse/tools/testing/provider-double'
import { onTestFinished } from 'vitest'

import { type Clock, systemClock } from '#platform/clock.ts'
import { createSecretBox } from '#platform/secrets.ts'
import { type Browser, openBrowser, publicUrl } from '#testing/browser.ts'
import { createTestApi } from '#testing/test-api.ts'

type Options = {
  now?: Clock
  accounts?: Record<string, Account>
  /** Of the organization; the others name theirs. */
  mappings?: readonly object[]
  createMembers?: boolean
  claims?: object
  /** More providers at the same gateway. */
  others?: readonly string[]
}

/** An API whose people sign in with a provider `corp`, which runs in this process. */
export async function startProviderApi(options: Options = {}) {
  const { now = systemClock, accounts = {}, others = [] } = options
  const ids = ['corp', ...others]
  const deliver = async (url: string, form: string) => {
    const response = await api.app.inject({
      method: 'POST',
      url: new URL(url).pathname,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      payload: form,
    })
    delivered.push({ url, form, status: response.statusCode })
    return { status: response.statusCode, text: response.body }
  }
  const start = async (id: string) =>
    [
      id,
      await startProviderDouble({
        redirectUris: [`${publicUrl}/auth/${id}/callback`],
        backchannelLogoutUri: `${publicUrl}/auth/${id}/backchannel_logout`,
        accounts,
        deliver,
      }),
    ] as const
  const delivered: { url: string; form: string; status: number }[] = []
  const doubles = new Map(await Promise.all(ids.map(start)))
  for (const { stop } of doubles.values()) onTestFinished(stop)
  const folder = mkdtempSync(join(tmpdir(), 'sign-in-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'sign-in.json')
  let organizationId = ''
  const write = (changes: Partial<Options> = {}) => {
    const { mappings = [], createMembers = true, claims = {} } = { ...options, ...changes }
    const file = {
      providers: ids.map((id) => ({
        id,
        name: `The ${id}`,
        issuer: doubles.get(id)?.issuer,
        client_id: clientId,
        client_secret: { env: 'CORP_SECRET' },
        scopes: ['openid', 'profile', 'email', 'offline_access'],
        parameters: { prompt: 'consent' }, // otherwise the double, which is strict, gives no refresh token
        claims,
      })),
      mappings: mappings.map((each) => ({
        provider: 'corp',
        organization: organizationId,
        ...each,
      })),
      create_members: createMembers,
    }
    writeFileSync(`${path}.new`, JSON.stringify(file))
    renameSync(`${path}.new`, path)
  }
  const api = await createTestApi({
    now,
    environment: (id) => {
      organizationId = id
      write()
      return {
        PUBLIC_URL: publicUrl,
        SIGN_IN_FILE: path,
        CORP_SECRET: clientSecret,
        EGRESS_PRIVATE_TARGETS: [...doubles.values()].map(({ target }) => target).join(','),
      }
    },
  })
  const double = doubles.get('corp')!
  /** Ready to be signed in: the provider's answer, as the address that it sends the browser to. */
  const begin = async (
    account: string,
    { browser = openBrowser(api.app), path: at = '/auth/corp' } = {},
  ) => {
    const begun = await browser.get(at)
    if (begun.status !== 303) throw new Error(`${begun.status}: ${begun.text}`)
    double.state.current = account
    const url = new URL(String(begun.headers.location))
    const asked = [...doubles.values()].find(({ issuer }) => issuer === url.origin) ?? double
    asked.state.current = account
    const answer = await goThrough(asked, url)
    return { browser, answer, path: answer.pathname + answer.search }
  }
  const signIn = async (account: string, more: { browser?: Browser; path?: string } = {}) => {
    const begun = await begin(account, more)
    const page = await begun.browser.get(begun.path)
    return { ...begun, page }
  }
  const members = async (organization = organizationId) =>
    api.db
      .selectFrom('member')
      .select(['email', 'role', 'role_source', 'status'])
      .where('organization_id', '=', organization)
      .orderBy('created_at')
      .execute()
  const actions = async () => {
    const events = await api.db.selectFrom('event').select(['header']).orderBy('at').execute()
    return events.map(({ header }) => {
      const { object, action, actor } = header as Record<string, string>
      return `${String(object).replace('organization.', '')} ${action} by ${actor === 'gatehouse' ? actor : 'person'}`
    })
  }
  return {
    ...api,
    organizationId,
    double,
    doubles,
    /** What the provider has sent to the gateway by itself. */
    delivered,
    deliver,
    write,
    begin,
    signIn,
    members,
    actions,
    secretBox: createSecretBox(api.house.config.MASTER_KEYS),
  }
}

/** What the page says went wrong. */
export const problemIn = (page: string) =>
  /<p class="warning"[^>]*>([^<]*)<\/p>/.exec(page)?.[1]?.replaceAll('&#39;', "'")
