import { createClient } from '@gatehouse/contract/client'
import { readGatewayRollout, saveGatewayConfig } from '@gatehouse/contract/policy-gateway/gateway'
import { createTenants, type Stack } from '@gatehouse/tools/start-stack'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'

import { beginRaw } from '#support/streams/call.ts'

/** One way to make a process work hard. Add an entry to `attacks` in neighbours.test.ts. */
export type Attack = {
  name: string
  /** Called once, with an organization of its own: saves a configuration, publishes policies, writes texts. */
  prepare?(attacker: Attacker): Promise<void>
  /** Sends requests until it is over, and resolves when the last of them has been answered or given up. */
  send(attacker: Attacker, until: AbortSignal): Promise<void>
}

/** An organization of the highest tier, without limits of its own. */
export type Attacker = {
  baseUrl: string
  adminKey: string
  projectKey: string
  /** Posts once. Resolves to the status; 0 if the call was given up because the attack is over. */
  post(path: string, payload: Buffer, until: AbortSignal): Promise<number>
  /** Saves a configuration of the policy gateway, and waits until it is applied. */
  configure(config: object): Promise<void>
  /** How often each status was answered. */
  statuses: ReadonlyMap<number, number>
}

export async function createAttacker({ service, description }: Stack): Promise<Attacker> {
  const [tenant] = await createTenants(service, 1)
  if (!tenant) throw new Error('No organization was created.')
  const { admin_key: adminKey, project_key: projectKey } = tenant
  const { base_url: baseUrl } = description
  const statuses = new Map<number, number>()
  return {
    baseUrl,
    adminKey,
    projectKey,
    statuses,
    async post(path, payload, until) {
      if (until.aborted) return 0
      const call = beginRaw({ baseUrl, credential: projectKey }, { path, payload })
      until.addEventListener('abort', call.hangUp)
      const status = await call.answer.then(
        (answer) => answer.status,
        () => 0,
      )
      until.removeEventListener('abort', call.hangUp)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      return status
    },
    async configure(config) {
      const client = createClient({ baseUrl, credential: adminKey })
      await client.call(saveGatewayConfig, { body: { config } as never })
      await waitUntil(async () => (await client.call(readGatewayRollout, {})).is_applied)
    },
  }
}

/** Repeats `act` in `atOnce` parallel loops until the signal aborts. */
export async function repeatAtOnce(
  atOnce: number,
  until: AbortSignal,
  act: () => Promise<unknown>,
) {
  const repeat = async () => {
    while (!until.aborted) await act()
  }
  await Promise.all(Array.from({ length: atOnce }, repeat))
}

export const toPayload = (body: object): Buffer => Buffer.from(JSON.stringify(body))
