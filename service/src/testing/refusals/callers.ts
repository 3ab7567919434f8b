import { deleteProjectApiKey } from '@gatehouse/contract/api-key'
import { createProject, updateProject } from '@gatehouse/contract/project'
import { sql } from 'kysely'
import { expect } from 'vitest'

import type { IssuerDouble } from '#testing/issuer-double.ts'
import type { createTestApi } from '#testing/test-api.ts'
import { createProjectKey } from '#testing/test-gateway.ts'

import type { CallerTrait } from './fault.ts'
import { quotaOfRequests } from './setting.ts'

type Api = Awaited<ReturnType<typeof createTestApi>>
type Traits = ReadonlySet<CallerTrait>

/** What a project has that its calls are refused for. */
const edits: Partial<Record<CallerTrait, object>> = {
  'over its limits': { limits: { requests_per_day: 1 } },
  'with tiny limits': { limits: { tokens_per_minute: 1 } },
  'over its budget': { monthly_budget: { credits: 0 } },
}

/** Makes the headers by which a caller with some traits authenticates, once for each combination. */
export function createCallers(api: Api, issuer: IssuerDouble) {
  const known = new Map<string, Promise<Record<string, string>>>()
  return (traits: Traits): Promise<Record<string, string>> => {
    const name = [...traits].toSorted().join()
    const made = known.get(name) ?? makeCaller(api, issuer, traits)
    known.set(name, made)
    return made
  }
}

async function makeCaller(api: Api, issuer: IssuerDouble, traits: Traits) {
  const projectId = await makeProject(api, traits)
  const headers = traits.has('a token of no project')
    ? await makeToken(api, issuer, { traits, projectId })
    : await makeKey(api, traits, projectId)
  if (traits.has('over its limits')) await useUp(api, headers)
  return headers
}

async function makeProject({ send, organization }: Api, traits: Traits): Promise<string> {
  const changes = [...traits].flatMap((trait) => edits[trait] ?? [])
  if (changes.length === 0) return organization.projectId
  const created = await send(createProject, { body: { name: 'Short of something' } })
  const params = { project_id: created.body.id }
  for (const body of changes) {
    expect((await send(updateProject, { params, body })).status).toBe(200)
  }
  return created.body.id
}

type Named = { traits: Traits; projectId: string }

async function makeToken(api: Api, issuer: IssuerDouble, { traits, projectId }: Named) {
  const { organizationId, projectId: ownProject } = api.organization
  const sub = `user of ${[...traits].join()}`
  if (traits.has('over its quota')) await useUpQuota(api, sub)
  const token = await issuer.sign({
    organization_id: organizationId,
    scope: traits.has('without permission') ? 'nothing' : 'use',
    sub,
    ...(traits.has('revoked') && { iat: 1, exp: 2 }),
  })
  return {
    authorization: `Bearer ${token}`,
    ...(projectId !== ownProject && { 'x-policy-project': projectId }),
  }
}

async function makeKey(api: Api, traits: Traits, projectId: string) {
  const { house, send, organization } = api
  const { organizationId } = organization
  const isPowerless = traits.has('without permission')
  const key = await createProjectKey(
    house,
    { organizationId, projectId },
    isPowerless ? { permissions: ['credits.read'] } : {},
  )
  if (traits.has('revoked')) {
    const params = { project_id: projectId, key_id: key.id }
    expect((await send(deleteProjectApiKey, { params })).status).toBe(200)
  }
  if (traits.has('over its quota')) await useUpQuota(api, key.id)
  return key.headers
}

/** As if calls of this month had used all of the quota. */
const useUpQuota = ({ db, organization: { organizationId } }: Api, subject: string) =>
  sql`insert into quota_usage values
    (${organizationId}, 'user', ${subject}, date_trunc('month', now() at time zone 'utc'), ${quotaOfRequests}, 0, 0)`.execute(
    db,
  )

/** An attempt without a body counts as a request. */
async function useUp({ app }: Api, headers: Record<string, string>) {
  await app.inject({
    method: 'POST',
    url: '/v1/chat/completions',
    headers: { ...headers, 'content-type': 'application/json' },
    payload: '{}',
  })
}
