import { defaultProjectKeyPermissions } from '@gatehouse/contract/permission'

import { makeKey } from '#access/keys/make-key.ts'
import { createOrganization } from '#access/manage-organizations.ts'
import { assemble } from '#assemble.ts'
import { operator } from '#audit/event.ts'
import { loadConfig } from '#config.ts'
import { recordPayment } from '#credits/payments/payments.ts'
import { transact } from '#platform/transaction.ts'

// Creates as many organizations as its argument says, each of the highest tier and with one project key, and
// prints them as JSON. Load tests send more than the limits of one organization allow.

const house = assemble(loadConfig({ ...process.env, LOG_LEVEL: 'silent', MODELS_FILE: '' }))
const tenants: { organization_id: string; admin_key: string; project_key: string }[] = []
const keyRequest = { name: 'Load', permissions: defaultProjectKeyPermissions }
for (let made = 0; made < Number(process.argv[2]); made++) {
  const organization = await createOrganization(`Tenant ${made}`, house)
  const { organizationId, projectId, adminKey } = organization
  const payment = { id: 'load-test', amount: 5_000_000_000n }
  await recordPayment(organizationId, payment, { ...house, by: operator })
  const { value } = await transact(house.db, (tx) =>
    makeKey(tx, { organizationId, projectId }, keyRequest, { ...house, now: house.now() }),
  )
  tenants.push({ organization_id: organizationId, admin_key: adminKey, project_key: value })
}
await house.stop()
process.stdout.write(JSON.stringify(tenants))
