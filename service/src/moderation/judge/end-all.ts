import { worstOf } from './judge.ts'

/** Waits for all, also if one fails: what the others say is worth knowing. */
export async function endAll(work: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(work)
  const failures = results
    .filter((result) => result.status === 'rejected')
    .map(({ reason }): unknown => reason)
  if (failures.length > 0) throw worstOf(failures)
}
