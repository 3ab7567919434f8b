import { createClient } from '@gatehouse/contract/client'
import { saveGatewayConfig } from '@gatehouse/contract/policy-gateway/gateway'

import { createCaller, requireStatus } from '../callers.ts'
import type { Gatehouse } from '../targets/gatehouse.ts'

const termsEach = 100
const forbidden = 'Project Nightjar'

/** What an organization may well have: two hundred terms, two flagged categories, and redaction. */
const config = {
  rules: {
    // Each begins differently, and one of them is in every text of the load.
    allowlist: ['a', ...Array.from({ length: termsEach - 1 }, (_, index) => `approved ${index}`)],
    denylist: [
      forbidden,
      ...Array.from({ length: termsEach - 1 }, (_, index) => `${index} secret`),
    ],
    flagged_categories: ['hate', 'harassment'],
    redact: true,
  },
}

/** Two organizations of one Gatehouse, one of which has a configuration of the policy gateway. */
export async function createConfigured(gatehouse: Gatehouse) {
  const without = await createCaller(gatehouse, 'Gatehouse without a configuration')
  const configured = await createCaller(gatehouse, 'Gatehouse with a configuration')
  const { admin_key: credential } = configured.organization
  await createClient({ baseUrl: gatehouse.url, credential }).call(saveGatewayConfig, {
    body: { config },
  })
  await requireStatus(without.target, forbidden, 200)
  await untilRefused(() => requireStatus(configured.target, forbidden, 400))
  return { without: without.target, configured: configured.target }
}

const appliedWithinMs = 10_000

/** A configuration that was saved reaches every process within a second or so. */
async function untilRefused(check: () => Promise<void>) {
  const deadline = performance.now() + appliedWithinMs
  for (;;) {
    try {
      return await check()
    } catch (error) {
      if (performance.now() > deadline) throw error
    }
  }
}
