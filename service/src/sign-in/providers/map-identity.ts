import { Role } from '@gatehouse/contract/role'

import type { Identity } from './read-identity.ts'
import type { Mapping, SignInProvider, SignInSettings } from './read-sign-in.ts'
import type { TraitName } from './sign-in-file.ts'

/** What the mappings give an account in one organization. */
export type MappedRole = {
  readonly organizationId: string
  readonly role: Role
  /** Which mapping gave the role, such as `group platform-admins`: members see it as the source of their role. */
  readonly source: string
}

/** Why mappings that might match cannot be decided about. */
type Doubt = 'groups_missing' | 'address_unverified'

export type Mapped = {
  /** At most one for each organization, with the highest role that it has got. */
  readonly entries: readonly MappedRole[]
  readonly doubt: Doubt | null
}

/**
 * The rule from claims to roles: a mapping matches or does not, the highest role wins in each organization, and what no
 * mapping gives is not given. While a provider leaves groups out, the account gets nothing through mappings of groups, and
 * nothing through its address either: it would lose roles without a word. App roles are always sent whole, so they decide.
 */
export function mapIdentity(identity: Identity, mappings: readonly Mapping[]): Mapped {
  const matching = mappings.filter((mapping) => matches(mapping, identity))
  const hasGroupMappings = mappings.some(({ trait }) => trait === 'group')
  if (identity.lacksGroups && hasGroupMappings) {
    const byAppRole = matching.filter(({ trait }) => trait === 'app_role')
    return {
      entries: highestOfEach(byAppRole),
      doubt: byAppRole.length > 0 ? null : 'groups_missing',
    }
  }
  const entries = highestOfEach(matching)
  const wouldMatch = () => {
    const verified = { ...identity, isEmailVerified: true }
    return mappings.some((mapping) => matches(mapping, verified))
  }
  return { entries, doubt: entries.length === 0 && wouldMatch() ? 'address_unverified' : null }
}

const rules: Record<TraitName, (identity: Identity, value: string) => boolean> = {
  group: ({ groups }, value) => groups.includes(value),
  app_role: ({ appRoles }, value) => appRoles.includes(value),
  domain: ({ domain, isEmailVerified }, value) => isEmailVerified && domain === value,
  email: ({ email, isEmailVerified }, value) => isEmailVerified && email === value,
}

const matches = ({ trait, value }: Mapping, identity: Identity) => rules[trait](identity, value)

/** The order of the roles is that of their list: the highest stands first. */
const rankOf = (role: Role) => Role.options.indexOf(role)

function highestOfEach(mappings: readonly Mapping[]): MappedRole[] {
  const best = new Map<string, Mapping>()
  for (const mapping of mappings) {
    const known = best.get(mapping.organizationId)
    if (!known || rankOf(mapping.role) < rankOf(known.role)) {
      best.set(mapping.organizationId, mapping)
    }
  }
  return [...best.values()].map(({ organizationId, role, trait, value }) => ({
    organizationId,
    role,
    source: `${trait} ${value}`,
  }))
}

/**
 * Whether the addresses of a provider's accounts count for the members of an organization: if a mapping names both. With several
 * providers, each could otherwise claim the address of a member of any organization. Where no mapping names the organization, the
 * operator has not said whose addresses count, and all do.
 */
export function vouchesFor(
  { providers }: SignInSettings,
  { mappings }: SignInProvider,
  organizationId: string,
): boolean {
  const names = (own: readonly Mapping[]) =>
    own.some((each) => each.organizationId === organizationId)
  return names(mappings) || !providers.some((other) => names(other.mappings))
}
