import { Permission } from '@gatehouse/contract/permission'
import { z } from 'zod'

/** Symmetric algorithms and `none` are not in the list and cannot be configured. */
const Algorithm = z.enum(['EdDSA', 'ES256', 'RS256', 'PS256'])

const Issuer = z.strictObject({
  issuer: z.string().min(1).max(500), // the exact `iss` of its tokens
  // http only for a host in EGRESS_PRIVATE_TARGETS
  jwks_url: z.url({
    protocol: /^https?$/,
    error: 'must be a URL such as https://login.example.com/jwks.json',
  }),
  audience: z.string().min(1).max(500),
  algorithms: z.array(Algorithm).min(1).default(['EdDSA', 'ES256', 'RS256', 'PS256']),
  organizations: z.array(z.string().min(1).max(200)).min(1).max(10_000), // those it may speak for
  organization_claim: z.string().min(1).max(200).default('organization_id'),
  project_claim: z.string().min(1).max(200).default('project_id'),
  permissions_claim: z.string().min(1).max(200).default('scope'),
  permissions: z.record(z.string().min(1).max(200), z.array(Permission)), // claim value → what it allows
  type: z.string().min(1).max(100).default('JWT'), // the `typ` of its tokens
})
export type Issuer = z.output<typeof Issuer>

/** The only issuers whose tokens are accepted. Claims are mapped through this table, never used as they are. */
export const IssuerTable = z
  .array(Issuer)
  .max(100)
  .refine((table) => new Set(table.map(({ issuer }) => issuer)).size === table.length, {
    error: 'must not name an issuer twice',
  })
export type IssuerTable = z.output<typeof IssuerTable>

/** The permissions that the values of the claim grant; a value that the table does not list grants none. */
export function permissionsFrom(issuer: Issuer, claim: unknown): Set<Permission> {
  const values = typeof claim === 'string' ? claim.split(' ') : Array.isArray(claim) ? claim : []
  return new Set(
    values.flatMap((value: unknown) =>
      typeof value === 'string' && Object.hasOwn(issuer.permissions, value)
        ? (issuer.permissions[value] ?? [])
        : [],
    ),
  )
}
