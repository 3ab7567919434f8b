import { Role } from '@gatehouse/contract/role'
import { z } from 'zod'

import { explainFileIssue } from '#http/validate.ts'
import { fileError, memberName } from '#platform/operator-file/file-error.ts'
import { KeyReference } from '#platform/operator-file/key-reference.ts'
import { scanJson } from '#platform/operator-file/scan-json.ts'

// SIGN_IN_FILE as the operator writes it (docs/sign-in.md): its members, and what is wrong with them.

/** They are parts of the addresses `/auth/{provider}`. */
const ProviderId = z.string().regex(/^[a-z][a-z0-9-]{0,31}$/, {
  error:
    'must begin with a lower-case letter and have 1 to 32 lower-case letters, digits or hyphens',
})
const otherAddresses = ['device', 'invitation', 'key', 'link', 'providers', 'session']

/** A member of the token, or the steps to one that is inside others. */
const ClaimName = z.union(
  [z.string().min(1).max(200), z.array(z.string().min(1).max(200)).min(1).max(5)],
  { error: 'must be the name of a claim, or a list of up to 5 names that lead to it' },
)
export type ClaimName = z.infer<typeof ClaimName>

const Claims = z.strictObject({
  groups: ClaimName.default('groups'),
  app_roles: ClaimName.default('roles'),
  email: ClaimName.default('email'),
  /** `true`: people cannot choose their address at the provider, so each of its addresses counts as verified. */
  email_verified: z
    .union([ClaimName, z.literal(true)], {
      error: 'must be the name of a claim, or true if the provider vouches for all its addresses',
    })
    .default('email_verified'),
  name: ClaimName.default('name'),
  /** The organization at the provider. Where it is named, it decides about `domain` instead of the address. */
  hosted_domain: ClaimName.optional(),
})

const ProviderEntry = z.strictObject({
  id: ProviderId,
  name: z.string().min(1).max(80),
  issuer: z
    .url({ protocol: /^https?$/, error: 'must be an address such as https://login.example.com' })
    .max(500),
  client_id: z.string().min(1).max(500),
  client_secret: KeyReference,
  scopes: z
    .array(
      z
        .string()
        .regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/, { error: 'must be a scope, without spaces' }),
    )
    .min(1)
    .max(20)
    .default(['openid', 'profile', 'email']),
  /** What else the provider's page is opened with, such as `access_type`. */
  parameters: z
    .record(z.string().regex(/^[a-z][a-z0-9_]{0,63}$/), z.string().min(1).max(200))
    .refine((parameters) => Object.keys(parameters).length <= 10, {
      error: 'must have at most 10 members',
    })
    .default({}),
  claims: Claims.prefault({}),
})
export type ProviderEntry = z.infer<typeof ProviderEntry>

const domainRule = 'must be a domain in lower case, such as example.com'
const emailRule = 'must be an address in lower case, such as ada@example.com'
const isLowerCase = (text: string) => text === text.toLowerCase()

/** What an account must have. A mapping names exactly one of them. */
const traits = {
  group: z.string().min(1).max(256).optional(),
  app_role: z.string().min(1).max(256).optional(),
  domain: z
    .string()
    .regex(/^(?=.{4,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,63}$/, {
      error: domainRule,
    })
    .optional(),
  email: z
    .email({ error: emailRule })
    .max(254)
    .refine(isLowerCase, { error: emailRule })
    .optional(),
}
const traitNames = ['group', 'app_role', 'domain', 'email'] as const
export type TraitName = (typeof traitNames)[number]

const MappingEntry = z.strictObject({
  /** May be left out where there is one provider only. */
  provider: ProviderId.optional(),
  ...traits,
  organization: z.string().regex(/^org_[0-9a-z]{1,60}$/, { error: 'must be an id such as org_…' }),
  role: Role,
})
export type MappingEntry = z.infer<typeof MappingEntry>

const SignInFile = z.strictObject({
  providers: z.array(ProviderEntry).min(1).max(20),
  mappings: z.array(MappingEntry).max(1000).default([]),
  /** Whether an account that a mapping gives a role becomes a member without an invitation. */
  create_members: z.boolean().default(false),
})
type SignInFile = z.infer<typeof SignInFile>

type Complaint = { path: readonly PropertyKey[]; rule: string }

/** Checks everything but the secrets. One error lists all that is wrong, each with its line and member. */
export function parseSignInFile(text: string): SignInFile {
  const { fault, expected, repeated, lineOf } = scanJson(text)
  if (fault) {
    const { line, column } = fault
    throw fileError([`line ${line}, column ${column}: it is not JSON; expected ${expected}`])
  }
  const toProblem = ({ path, rule }: Complaint) =>
    `line ${lineOf(path)}: ${memberName(path)}: ${rule}`
  if (repeated.length > 0) {
    throw fileError(repeated.map((path) => toProblem({ path, rule: 'is given twice' })))
  }
  const json: unknown = JSON.parse(text)
  const result = SignInFile.safeParse(json)
  const complaints = result.success
    ? findComplaints(result.data)
    : result.error.issues.map((issue) => explainFileIssue(issue, json))
  if (complaints.length > 0) throw fileError(complaints.map(toProblem))
  if (!result.success) throw fileError(['the file: cannot be used'])
  return result.data
}

/** What no single member shows. */
function findComplaints({ providers, mappings }: SignInFile): Complaint[] {
  const ids = providers.map(({ id }) => id)
  const issuers = providers.map(({ issuer }) => new URL(issuer).href)
  return [
    ...providers.flatMap((entry, index) =>
      findProviderComplaints(entry, {
        isRepeated: ids.indexOf(entry.id) < index,
        isIssuerRepeated: issuers.indexOf(new URL(entry.issuer).href) < index,
      }).map(([member, rule]): Complaint => ({ path: ['providers', index, member], rule })),
    ),
    ...mappings.flatMap((entry, index) =>
      findMappingComplaints(entry, ids).map(([member, rule]): Complaint => ({
        path: ['mappings', index, ...(member ? [member] : [])],
        rule,
      })),
    ),
  ]
}

/** The member and what is wrong with it. */
type Fault = readonly [string, string]

/** What the protocol decides. */
const ownParameters: ReadonlySet<string> = new Set(
  'client_id redirect_uri response_type response_mode scope state nonce code_challenge code_challenge_method request request_uri claims'.split(
    ' ',
  ),
)

function findProviderComplaints(
  { id, issuer, ...entry }: ProviderEntry,
  { isRepeated, isIssuerRepeated }: { isRepeated: boolean; isIssuerRepeated: boolean },
) {
  const faults: Fault[] = []
  if (isRepeated) faults.push(['id', 'is the id of another provider too'])
  // Accounts and sessions are stored with the issuer, so that one of two clients would be asked about those of the other.
  if (isIssuerRepeated) faults.push(['issuer', 'is the issuer of another provider too'])
  if (otherAddresses.includes(id)) faults.push(['id', `must not be ${id}, which /auth/${id} uses`])
  const { username, password, search, hash } = new URL(issuer)
  if (username + password + search + hash !== '') {
    faults.push(['issuer', 'must not have a user name, a password, a query or a fragment'])
  }
  if (manyTenants.test(issuer)) {
    faults.push([
      'issuer',
      'must have the id of your tenant, because every account in the world passes otherwise',
    ])
  }
  if (!entry.scopes.includes('openid')) faults.push(['scopes', 'must have openid'])
  const own = Object.keys(entry.parameters).find((name) => ownParameters.has(name))
  if (own) faults.push(['parameters', `must not have ${own}, which the sign-in itself sets`])
  return faults
}

/** Issuers of Entra ID at which accounts of all tenants sign in. */
const manyTenants = /^https:\/\/login\.microsoftonline\.\w+\/(?:common|organizations|consumers)\//

function findMappingComplaints(entry: MappingEntry, ids: readonly string[]): Fault[] {
  const { provider } = entry
  const named = traitNames.filter((trait) => entry[trait] !== undefined)
  const faults: Fault[] = []
  if (named.length !== 1) {
    faults.push(['', `must have exactly one of ${traitNames.join(', ')}`])
  }
  if (provider === undefined && ids.length > 1) {
    faults.push(['provider', 'is required, because there are several providers'])
  }
  if (provider !== undefined && !ids.includes(provider)) {
    faults.push(['provider', 'is the id of no provider'])
  }
  return faults
}

/** What a mapping asks of an account. */
export function traitOf(entry: MappingEntry): { trait: TraitName; value: string } {
  for (const trait of traitNames) {
    const value = entry[trait]
    if (value !== undefined) return { trait, value }
  }
  throw new Error('a mapping of a checked file has a trait')
}
