import { expect, test } from 'vitest'

import { createId } from '#platform/id.ts'
import { problemIn, startProviderApi } from '#sign-in/testing/provider-api.ts'

const eve = { email: 'owner@example.com', email_verified: true, name: 'Eve', groups: [] }
const staff = { group: 'staff', role: 'developer' }

/** A gateway with two providers, and an organization whose owner is invited and has never come. */
async function start(mappings: readonly object[]) {
  const api = await startProviderApi({ accounts: { eve }, others: ['partner'], mappings })
  await api.db
    .insertInto('member')
    .values({
      organization_id: api.organizationId,
      id: createId('mem', new Date()),
      email: eve.email,
      name: 'Owner',
      role: 'owner',
      status: 'invited',
      created_at: new Date(),
    })
    .execute()
  return api
}

test('a provider of other organizations does not vouch for the address of an invited member', async () => {
  const api = await start([staff])
  const { page } = await api.signIn('eve', { path: '/auth/partner' })
  expect([page.status, problemIn(page.text)]).toEqual([
    403,
    'Your account has no role here. Ask an administrator for an invitation, or to be added to a group that has a role.',
  ])
  expect(await api.members()).toMatchObject([{ status: 'invited', role: 'owner' }])
  expect((await api.signIn('eve')).page.status).toBe(200)
  expect(await api.members()).toMatchObject([{ status: 'active', role: 'owner' }])
})

test('in an organization without a mapping every provider vouches for addresses', async () => {
  const api = await start([])
  expect((await api.signIn('eve', { path: '/auth/partner' })).page.status).toBe(200)
})
