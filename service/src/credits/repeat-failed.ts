import { ApiError } from '#platform/api-error.ts'
import { TooManyWaiting } from '#platform/batched.ts'
import { isStoreAway } from '#platform/to-api-error.ts'

import { type Aside, createLines, isLockTimeout, type Placed, type Run } from './waiting-lines.ts'

type Options<Item, Answer> = {
  run: Run<Item, Answer | undefined>
  aside: Aside
  /** Told of an item of which nobody knows at the moment whether it was done. */
  onUnsure?: (item: Item) => void
}

/** How often an item may fail in each way and be tried again. */
const repeatsMax = { crowded: 0, locked: 4, away: 1, refused: 1 }

/**
 * Does it in batches, and again where that fails. An item that the database cannot digest would spoil every
 * batch it is in, so unless the database is away or the account is locked the second attempt is made alone.
 */
export function createRepeating<Item extends Placed, Answer>(options: Options<Item, Answer>) {
  const { run, aside, onUnsure } = options
  const { together, alone } = createLines(run, aside)

  async function repeat(item: Item, signal?: AbortSignal) {
    const failures = { crowded: 0, locked: 0, away: 0, refused: 0 }
    let isSure = true
    for (;;) {
      try {
        const answer = await (failures.refused > 0 ? alone : together)(item, signal)
        if (isSure) return answer
        // An earlier attempt may still have been under way, unseen, when this one began. Now it is over.
        isSure = true
      } catch (error) {
        const kind = kindOf(error)
        if (kind === 'away') {
          isSure = false
          onUnsure?.(item)
        }
        failures[kind]++
        if (signal?.aborted || failures[kind] > repeatsMax[kind]) throw error
      }
    }
  }

  return async (item: Item, signal?: AbortSignal): Promise<Answer> => {
    const answer = await repeat(item, signal)
    if (answer === undefined) throw new Error(`${item.organizationId} has no credit account`)
    return answer
  }
}

function kindOf(error: unknown): keyof typeof repeatsMax {
  if (error instanceof TooManyWaiting || error instanceof ApiError) return 'crowded'
  if (isLockTimeout(error)) return 'locked'
  return isStoreAway(error) ? 'away' : 'refused'
}
