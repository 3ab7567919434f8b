import type { Role } from '@gatehouse/contract/role'
import type { Stack } from '@gatehouse/tools/start-stack'
import type pg from 'pg'
import { expect } from 'vitest'

/** The setting of stacks whose tests sign in. */
export const publicUrl = 'https://gateway.example.com'

const cookieName = '__Host-gatehouse'
export const cookieOf = (secret: string) => ({ cookie: `${cookieName}=${secret}` })

/** What browsers send from a page of the gateway. */
export const ownPage = { 'sec-fetch-site': 'same-origin', origin: publicUrl }

type Opened = {
  form?: Record<string, string>
  headers?: Record<string, string>
}

/** Opens a page, or sends a form of one. Redirects are not followed. */
export async function openPage(url: string, { form, headers }: Opened = {}) {
  const response = await fetch(url, {
    method: form ? 'POST' : 'GET',
    redirect: 'manual',
    headers: {
      ...ownPage,
      ...(form && { 'content-type': 'application/x-www-form-urlencoded' }),
      ...headers,
    },
    ...(form && { body: new URLSearchParams(form).toString() }),
    signal: AbortSignal.timeout(60_000),
  })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

/** Signs in with an administrator key, and returns the secret of the cookie. */
export async function signInWithKey(
  baseUrl: string,
  key: string,
  headers: Record<string, string> = {},
): Promise<string> {
  const answer = await openPage(`${baseUrl}/auth/key`, { form: { key }, headers })
  const [, secret] = /^__Host-gatehouse=(gate_ses_\w+);/.exec(
    answer.headers.get('set-cookie') ?? '',
  ) ?? [undefined, undefined]
  expect([answer.status, typeof secret]).toEqual([303, 'string'])
  return secret!
}

/** The token that a page of the gateway has in its form. */
export async function readCsrf(baseUrl: string, secret: string): Promise<string> {
  const { text } = await openPage(`${baseUrl}/auth/session`, { headers: cookieOf(secret) })
  const [, csrf = ''] = /name="csrf" value="([^"]+)"/.exec(text) ?? []
  expect(csrf).not.toBe('')
  return csrf
}

type Wanted = { role?: Role; form?: 'browser' | 'token' }
export type MemberSession = { memberId: string; sessionId: string; secret: string }

let members = 0

/**
 * A member who has signed in. There is no provider in these tests: the session of a key becomes that of a new member, before
 * any process has seen it. One at a time.
 */
export async function signInMember(
  { description }: Pick<Stack, 'description'>,
  database: pg.Client,
  { role = 'viewer', form = 'browser' }: Wanted = {},
): Promise<MemberSession> {
  const memberId = `mem_${String(++members).padStart(24, '0')}`
  const { organization_id: organization, base_url, admin_key } = description
  await database.query(
    `insert into member (organization_id, id, email, name, role, status, created_at)
     values ($1, $2, $2 || '@example.com', 'x', $3, 'active', now())`,
    [organization, memberId, role],
  )
  const secret = await signInWithKey(base_url, admin_key)
  const { rows } = await database.query<{ id: string }>(
    `update session set member_id = $2, key_id = null, form = $3
     where organization_id = $1 and id = (
       select id from session where organization_id = $1 and key_id is not null
       order by created_at desc, id desc limit 1
     ) returning id`,
    [organization, memberId, form],
  )
  expect(rows).toHaveLength(1)
  return { memberId, sessionId: rows[0]!.id, secret }
}
