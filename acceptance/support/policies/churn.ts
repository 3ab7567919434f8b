import { CallFailed, createClient } from '@gatehouse/contract/client'
import { createPolicy, deletePolicy } from '@gatehouse/contract/policy'

type Existing = { id: string; revision: number }
type Options = {
  baseUrl: string
  credential: string
  clients: number
}

/**
 * Clients that create and delete policies. Each `step` is one of both: what is deleted is alternately one of `victims`,
 * first the last of them, and the one just created, so that items disappear all over the list. The test paces the steps, and
 * not a clock: on a slow machine, too, there are as many changes to a page.
 */
export function startChurn(
  { baseUrl, credential, clients }: Options,
  victims: readonly Existing[],
) {
  const client = createClient({ baseUrl, credential })
  const left = [...victims]
  const created = new Set<string>()
  let deleted = 0
  let isOver = false

  const idle: (() => void)[] = []
  let due = 0

  const untilDue = () => new Promise<void>((resolve) => idle.push(resolve))

  async function run(index: number) {
    for (let step = 0; ; step++) {
      while (!isOver && due === 0) await untilDue()
      if (isOver) return
      due--
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
    step() {
      due++
      idle.shift()?.()
    },
    async stop() {
      isOver = true
      for (const wake of idle) wake()
      await running
      return { created, deleted }
    },
  }
}

/** The walker deletes policies too, and may have deleted this one first. */
function ifGone(error: unknown) {
  if (!(error instanceof CallFailed && error.code === 'policy_not_found')) throw error
}
