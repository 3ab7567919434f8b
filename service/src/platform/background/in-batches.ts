import type { Rest } from './run-task.ts'

/** What is left after this many batches waits for the next pass, so that one table does not keep the others waiting. */
const batchesMax = 100

/** Repeats `remove` with a rest after each batch, until a batch is not full. */
export async function inBatches(rest: Rest, batchMax: number, remove: () => Promise<number>) {
  for (let batch = 0; batch < batchesMax; batch++) {
    if ((await remove()) < batchMax) return
    await rest()
  }
}
