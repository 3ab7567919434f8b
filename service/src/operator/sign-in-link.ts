import { makeLink } from '#access/member-links/make-link.ts'
import { lockMembers } from '#access/members/change-member.ts'
import { operator } from '#audit/event.ts'
import { transact } from '#platform/transaction.ts'

import { type Command, type CommandOutput, type OperatorDeps, UsageError } from './command.ts'
import { requireByEmail } from './members.ts'
import { noOrganization } from './present.ts'
import { readEmail } from './read-values.ts'

export const signInLink: Command = {
  synopsis: '--organization <organization id> --email <address>',
  help: [
    'Prints a link that signs a member in once, within 10 minutes, without a provider. It replaces',
    'an earlier one. An invited member becomes active: give the link to that person only.',
    'Needs PUBLIC_URL; with SIGN_IN_WITH_KEYS=false there are no links.',
  ],
  organizationId: 'none',
  required: ['organization', 'email'],
  optional: [],
  needsProvedKey: true,
  prepare({ values }) {
    const { organization = '' } = values
    if (organization === '') throw new UsageError('--organization takes the id of an organization.')
    const email = readEmail(values.email)
    return (deps) => makeSignInLink(organization, email, deps)
  },
}

async function makeSignInLink(
  organizationId: string,
  email: string,
  deps: OperatorDeps,
): Promise<CommandOutput> {
  const { db, announce, publicUrl, isWithKeys } = deps
  if (publicUrl === undefined) {
    throw new Error('PUBLIC_URL is not set. Set the environment as for the service.')
  }
  if (!isWithKeys) throw new Error('Links do not sign in here: SIGN_IN_WITH_KEYS is false.')
  const { member, url, expiresAt } = await transact(db, async (tx) => {
    if (!(await lockMembers(tx, organizationId))) throw noOrganization(organizationId)
    const member = await requireByEmail(tx, organizationId, email)
    if (member.status === 'suspended') {
      throw new Error(`The member with the address '${email}' is suspended.`)
    }
    const made = await makeLink(tx, 'sign_in', member, { ...deps, publicUrl })
    const expires_at = made.expiresAt.toISOString()
    const after = { id: member.id, object: 'organization.member.sign_in_link', expires_at }
    await announce(tx, { organizationId, by: operator, action: 'created', before: null, after })
    return { member, ...made }
  })
  const until = expiresAt.toISOString()
  const note = `It signs ${member.email} in once, until ${until}. It is not shown again.`
  return {
    result: { member_id: member.id, email: member.email, url, expires_at: until },
    text: `${url}\n${note}\n`,
  }
}
