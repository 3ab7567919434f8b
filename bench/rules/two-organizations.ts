import { createClient } from '@gatehouse/contract/client'
import { createPolicy, publishPolicy } from '@gatehouse/contract/policy'
import type { NewOrganization } from '@gatehouse/tools/start-stack'

import { createCaller, requireStatus } from '../callers.ts'
import type { Gatehouse } from '../targets/gatehouse.ts'
import { exactRules, forbidden } from './exact-rules.ts'

/** Two organizations of one Gatehouse that differ only in their rules. */
export async function createTwoOrganizations(gatehouse: Gatehouse) {
  const without = await createCaller(gatehouse, 'Gatehouse without rules')
  const ruled = await createCaller(gatehouse, `Gatehouse with ${exactRules.length} rules`)
  await publishRules(gatehouse.url, ruled.organization)
  await requireStatus(without.target, forbidden, 200)
  await requireStatus(ruled.target, forbidden, 400)
  return { without: without.target, ruled: ruled.target }
}

async function publishRules(baseUrl: string, { admin_key: credential }: NewOrganization) {
  const client = createClient({ baseUrl, credential })
  for (const [index, rule] of exactRules.entries()) {
    const policy = await client.call(createPolicy, {
      body: {
        name: `Rule ${index + 1}`,
        rule,
        mode: 'enforcing',
        direction: 'both',
        scope: 'organization',
      },
    })
    await client.call(publishPolicy, {
      params: { policy_id: policy.id },
      query: { wait: 'applied' },
      body: { revision: policy.revision },
    })
  }
}
