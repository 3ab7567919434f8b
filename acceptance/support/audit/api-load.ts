import { setTimeout as sleep } from 'node:timers/promises'

import type { Tenant } from '@gatehouse/tools/start-stack'

// Clients whose calls leave events: calls that are refused, calls of models, and changes by administrators. A call is
// acknowledged when its answer has arrived; the event has the id of its request.

type Random = (below: number) => number

type Load = {
  clients: number
  tenants: readonly Tenant[]
  random: Random
  /** The address of a running process, if there is one. */
  pickProcess: () => string | undefined
  /** How many calls may have been acknowledged by now. */
  allowed: () => number
  isOver: () => boolean
  onAcknowledged: (requestId: string) => void
}

type Request = { method: string; path: string; key: string; body?: object }

const refused = ({ project_key }: Tenant): Request => ({
  method: 'POST',
  path: '/v1/chat/completions',
  key: project_key,
  body: { model: 7 },
})

const served = ({ project_key }: Tenant, random: Random): Request => ({
  method: 'POST',
  path: '/v1/chat/completions',
  key: project_key,
  body: {
    model: 'crash-1',
    max_tokens: 10,
    messages: [
      {
        role: 'user',
        content: `#script ${JSON.stringify({ text: 'Yes.', headMs: random(50) })}`,
      },
    ],
  },
})

const adminKeys = '/v1/organization/admin_api_keys'
const createKey = ({ admin_key }: Tenant): Request => ({
  method: 'POST',
  path: adminKeys,
  key: admin_key,
  body: { name: 'Load', permissions: [] },
})
const deleteKey = ({ admin_key }: Tenant, id: string): Request => ({
  method: 'DELETE',
  path: `${adminKeys}/${id}`,
  key: admin_key,
})

/** Returns how many calls had each status; 0: the connection broke. */
export async function runApiLoad(load: Load): Promise<Map<number, number>> {
  const { tenants, random, pickProcess, onAcknowledged } = load
  const statuses = new Map<number, number>()
  let begun = 0

  async function send(request: Request): Promise<unknown> {
    begun++
    const baseUrl = pickProcess()
    const answer = baseUrl === undefined ? undefined : await call(baseUrl, request)
    const status = answer?.status ?? 0
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    if (!answer || ![200, 201, 400].includes(status)) {
      begun--
      await sleep(50)
      return undefined
    }
    onAcknowledged(answer.requestId)
    return answer.body
  }
  const runClient = async () => {
    while (!load.isOver()) {
      if (begun >= load.allowed()) {
        await sleep(10)
        continue
      }
      const tenant = tenants[random(tenants.length)]!
      const kind = random(20)
      if (kind < 15) await send(refused(tenant))
      else if (kind < 18) await send(served(tenant, random))
      else {
        const made = (await send(createKey(tenant))) as { id: string } | undefined
        if (made) await send(deleteKey(tenant, made.id))
      }
    }
  }
  await Promise.all(Array.from({ length: load.clients }, runClient))
  return statuses
}

/** Undefined: the connection broke before the whole answer was there. */
async function call(baseUrl: string, { method, path, key, body }: Request) {
  try {
    const response = await fetch(`${baseUrl}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(60_000),
    })
    const requestId = response.headers.get('x-request-id') ?? ''
    return { status: response.status, requestId, body: (await response.json()) as unknown }
  } catch {
    return undefined
  }
}
