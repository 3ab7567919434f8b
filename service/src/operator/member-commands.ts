import { Role } from '@gatehouse/contract/role'

import type { Command } from './command.ts'
import {
  inviteByOperator,
  listMemberPage,
  renewInvitation,
  setMemberRole,
  suspendMember,
} from './members.ts'
import { readEmail, readName, readRole } from './read-values.ts'

const list: Command = {
  synopsis: 'list <organization id> [--after <member id>]',
  help: ['Lists the members of an organization in the order of their invitations, 100 per page.'],
  organizationId: 'required',
  required: [],
  optional: ['after'],
  prepare:
    ({ organizationId, values }) =>
    (deps) =>
      listMemberPage(organizationId, values.after, deps),
}

const invite: Command = {
  synopsis: `invite <organization id> --email <address> --role <role> [--name <name>]`,
  help: [
    'Invites a person, such as the first owner. The first sign-in makes the member active. Prints a',
    'link for that person, which works for 7 days, if PUBLIC_URL is set.',
    `Roles: ${Role.options.join(', ')}.`,
  ],
  organizationId: 'required',
  required: ['email', 'role'],
  optional: ['name'],
  prepare({ organizationId, values }) {
    const invitation = {
      email: readEmail(values.email),
      role: readRole(values.role),
      name: values.name === undefined ? undefined : readName(values.name),
    }
    return (deps) => inviteByOperator(organizationId, invitation, deps)
  },
}

const invitation: Command = {
  synopsis: 'invitation <organization id> --email <address>',
  help: ['Prints a new link for a member who is invited, and ends the earlier one.'],
  organizationId: 'required',
  required: ['email'],
  optional: [],
  needsProvedKey: true,
  prepare({ organizationId, values }) {
    const email = readEmail(values.email)
    return (deps) => renewInvitation(organizationId, email, deps)
  },
}

const setRole: Command = {
  synopsis: `set-role <organization id> --email <address> --role <role>`,
  help: [
    'Gives a member another role, everywhere within 5 seconds. The last active owner stays one:',
    'make another active member an owner first.',
  ],
  organizationId: 'required',
  required: ['email', 'role'],
  optional: [],
  prepare({ organizationId, values }) {
    const [email, role] = [readEmail(values.email), readRole(values.role)]
    return (deps) => setMemberRole(organizationId, { email, role }, deps)
  },
}

const suspend: Command = {
  synopsis: 'suspend <organization id> --email <address>',
  help: [
    'Ends the sessions of a member, everywhere within 5 seconds, and refuses new ones. The last',
    "active owner cannot be suspended; 'organizations suspend' refuses everyone.",
  ],
  organizationId: 'required',
  required: ['email'],
  optional: [],
  prepare({ organizationId, values }) {
    const email = readEmail(values.email)
    return (deps) => suspendMember(organizationId, email, deps)
  },
}

export const memberCommands = { list, invite, invitation, 'set-role': setRole, suspend }
