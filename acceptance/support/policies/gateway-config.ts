import { createClient } from '@gatehouse/contract/client'
import { readGatewayRollout, saveGatewayConfig } from '@gatehouse/contract/policy-gateway/gateway'
import type { Stack } from '@gatehouse/tools/start-stack'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { onTestFinished } from 'vitest'

/** Saves the configuration of the stack's organization, and waits until every process applies it. */
export async function saveConfig({ description }: Stack, config: object) {
  const { base_url: baseUrl, admin_key: credential } = description
  const client = createClient({ baseUrl, credential })
  await client.call(saveGatewayConfig, { body: { config } as never })
  await waitUntil(async () => (await client.call(readGatewayRollout, {})).is_applied)
}

/** The same until the end of the test. */
export async function applyConfig(stack: Stack, config: object) {
  onTestFinished(() => saveConfig(stack, {}))
  await saveConfig(stack, config)
}
