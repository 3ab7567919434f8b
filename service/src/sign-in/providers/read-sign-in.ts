import type { Role } from '@gatehouse/contract/role'

import { fileError } from '#platform/operator-file/file-error.ts'
import type { KeyReference } from '#platform/operator-file/key-reference.ts'

import {
  type ClaimName,
  type MappingEntry,
  parseSignInFile,
  type ProviderEntry,
  type TraitName,
  traitOf,
} from './sign-in-file.ts'

/** Where a provider's tokens say what we ask about. */
export type ClaimNames = {
  readonly groups: ClaimName
  readonly appRoles: ClaimName
  readonly email: ClaimName
  readonly emailVerified: ClaimName | true
  readonly name: ClaimName
  /** Null: the domain of the verified address counts. */
  readonly hostedDomain: ClaimName | null
}

/** Accounts of a provider that have this trait get this role in this organization. */
export type Mapping = {
  readonly trait: TraitName
  readonly value: string
  readonly organizationId: string
  readonly role: Role
}

export type SignInProvider = {
  readonly id: string
  readonly name: string
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  readonly scopes: readonly string[]
  readonly parameters: Readonly<Record<string, string>>
  readonly claims: ClaimNames
  /** Its own only: the same group name at another provider means another group. */
  readonly mappings: readonly Mapping[]
}

export type SignInSettings = {
  readonly providers: readonly SignInProvider[]
  readonly createsMembers: boolean
}

export const noProviders: SignInSettings = { providers: [], createsMembers: false }

/** Throws where there is no usable secret; its message has the place and never the secret. */
export type ReadSecret = (reference: KeyReference) => string

/** Reads the text of the file, and the secrets that it refers to. One error lists everything that is wrong with it. */
export function readSignIn(text: string, readSecret: ReadSecret): SignInSettings {
  const file = parseSignInFile(text)
  const problems: string[] = []
  const [only] = file.providers
  const providers = file.providers.map((entry, index) => {
    const own = file.mappings.filter(({ provider = only?.id }) => provider === entry.id)
    try {
      return toProvider(entry, readSecret(entry.client_secret), own)
    } catch (error) {
      problems.push(`providers[${index}].client_secret: ${(error as Error).message}`)
      return null
    }
  })
  if (problems.length > 0) throw fileError(problems)
  return {
    providers: providers.filter((provider) => provider !== null),
    createsMembers: file.create_members,
  }
}

const toProvider = (
  { claims, ...entry }: ProviderEntry,
  clientSecret: string,
  mappings: readonly MappingEntry[],
): SignInProvider => ({
  id: entry.id,
  name: entry.name,
  issuer: entry.issuer,
  clientId: entry.client_id,
  clientSecret,
  scopes: entry.scopes,
  parameters: entry.parameters,
  claims: {
    groups: claims.groups,
    appRoles: claims.app_roles,
    email: claims.email,
    emailVerified: claims.email_verified,
    name: claims.name,
    hostedDomain: claims.hosted_domain ?? (isGoogle(entry.issuer) ? 'hd' : null),
  },
  mappings: mappings.map((mapping) => ({
    ...traitOf(mapping),
    organizationId: mapping.organization,
    role: mapping.role,
  })),
})

/**
 * A private account at Google can have a verified address of any domain, and keeps it after its owner has left the
 * organization. Only `hd` says that the organization manages the account.
 */
const isGoogle = (issuer: string) => new URL(issuer).host === 'accounts.google.com'
