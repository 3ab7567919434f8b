import pg from 'pg'
import type { BrowserContext } from 'playwright-core'

import type { Stack } from '../start-stack.ts'

/** Where pages of a stack of this machine say that they are from; the browser itself says that a request is of the same origin. */
export const consoleEnvironment = { PUBLIC_URL: 'http://127.0.0.1' }

type SignIn = {
  stack: Pick<Stack, 'database'>
  baseUrl: string
  adminKey: string
  /** A member in whose name the session is from then on. */
  memberId?: string
}

/**
 * Gives a browser a session, as the form of the sign-in page would. A member's session is one whose owner is changed before its
 * first use: a stack has no provider of identities.
 */
export async function signIn(
  context: BrowserContext,
  { stack, baseUrl, adminKey, memberId }: SignIn,
) {
  const response = await fetch(new URL('/auth/key', baseUrl), {
    method: 'POST',
    headers: { 'sec-fetch-site': 'same-origin' },
    body: new URLSearchParams({ key: adminKey, return_to: '/console' }),
    redirect: 'manual',
  })
  const [, value = ''] = /^gatehouse=([^;]+)/.exec(response.headers.getSetCookie()[0] ?? '') ?? []
  if (value === '') throw new Error(`The sign-in was refused with ${response.status}.`)
  if (memberId !== undefined) await giveToMember(stack, memberId)
  await context.addCookies([
    { name: 'gatehouse', value, url: baseUrl, httpOnly: true, sameSite: 'Lax' },
  ])
}

async function giveToMember({ database }: SignIn['stack'], memberId: string) {
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  try {
    await client.query("update member set status = 'active' where id = $1", [memberId])
    await client.query(
      `update session set member_id = $1, key_id = null where id =
       (select id from session where key_id is not null order by created_at desc, id desc limit 1)`,
      [memberId],
    )
  } finally {
    await client.end()
  }
}
