import { worstOf } from './judge.ts'

/** Waits for all promises even if one fails, because the other results are still useful. */
export async function endAll(work: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(work)
  const failures = results
    .filter((result) => result.status === 'rejected')
    .map(({ reason }): unknown => reason)
  if (failures.length > 0) throw worstOf(failures)
}
