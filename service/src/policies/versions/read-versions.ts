import { pageOf } from '@gatehouse/contract/list'
import { listPolicyVersions, retrievePolicyVersion } from '@gatehouse/contract/policy'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import { invalidCursor } from '#http/read-page.ts'
import type { Db } from '#platform/database.ts'
import { requirePolicy } from '#policies/find-policy.ts'
import type { PolicyKey } from '#policies/policy.ts'
import { presentVersion } from '#policies/present-policy.ts'
import { versionNotFound } from '#policies/refusals.ts'

import { findVersion, findVersionNumber, listVersions } from './version-store.ts'

export function serveListPolicyVersions(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, listPolicyVersions, async ({ params, query }, { principal: { organizationId } }) => {
    const policy = await requirePolicy(db, organizationId, params.policy_id)
    const key = { organizationId, policyId: policy.id }
    const after =
      query.after === undefined ? undefined : await requireVersionNumber(db, key, query.after)
    const versions = await listVersions(db, key, { ...query, after })
    return pageOf(
      versions.map((version) => presentVersion(version, policy.current_version)),
      query.limit,
    )
  })
}

/** The number of the version that a cursor names, else 400. */
async function requireVersionNumber(db: Db, key: PolicyKey, id: string) {
  const number = await findVersionNumber(db, key, id)
  if (number === undefined) throw invalidCursor()
  return number
}

export function serveRetrievePolicyVersion(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, retrievePolicyVersion, async ({ params }, { principal: { organizationId } }) => {
    const policy = await requirePolicy(db, organizationId, params.policy_id)
    const version = await findVersion(db, { organizationId, policyId: policy.id }, params.version)
    if (!version) throw versionNotFound()
    return presentVersion(version, policy.current_version)
  })
}
