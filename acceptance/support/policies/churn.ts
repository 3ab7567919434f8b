import { CallFailed, createClient } from '@gatehouse/contract/client'
import { createPolicy, deletePolicy } from '@gatehouse/contract/policy'

type Existing = { id: string; revision: number }
type Options = {
  baseUrl: string
  credential: string
  clients: number
  /** Policies created per second by all clients together; as many are deleted. */
  perSecond: number
}

/**
 * Clients that keep creating and deleting policies: they delete alternately one of `victims` and the one just created,
 * so that items disappear all over the list.
 */
export function startChurn(options: Options, victims: readonly Existing[]) {
  const { baseUrl, credential, clients, perSecond } = options
  const client = createClient({ baseUrl, credential })
  const left = [...victims]
  const created = new Set<string>()
  let deleted = 0
  let isOver = false

  async function run(index: number) {
    const stepMs = (1000 * clients) / perSecond
    const startedAt = performance.now() + (index * stepMs) / clients
    for (let step = 0; !isOver; step++) {
      const waitMs = startedAt + step * stepMs - performance.now()
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, waitMs)))
      const body = { name: `churn ${index}-${step}`, rule: 'Be kind.' }
      const made = await client.call(createPolicy, { body })
      created.add(made.id)
      await remove(step % 2 === 0 ? (left.pop() ?? made) : made)
    }
  }

  async function remove({ id, revision }: Existing) {
    const params = { policy_id: id }
    await client
      .call(deletePolicy, { params, query: { revision: String(revision) } })
      .then(() => deleted++, ifGone)
  }

  const running = Promise.all(Array.from({ length: clients }, (_, index) => run(index)))
  running.catch(() => undefined) // `stop` rejects with the error
  return {
    async stop() {
      isOver = true
      await running
      return { created, deleted }
    },
  }
}

/** The walker deletes policies too, and may have deleted this one first. */
function ifGone(error: unknown) {
  if (!(error instanceof CallFailed && error.code === 'policy_not_found')) throw error
}
