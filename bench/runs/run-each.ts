import type { Figures } from '../budget/goals.ts'

type Attempts<Name> = {
  attempt(name: Name): Promise<Figures>
  /** Whether the processes of the run have been stopped: every other section would fail too. */
  isInterrupted(): boolean
}

/** A section that fails says why, and the others go on: what they measure is no less true. */
export async function runEach<Name extends string>(
  names: readonly Name[],
  { attempt, isInterrupted }: Attempts<Name>,
) {
  const figures: Figures = {}
  const failed: Name[] = []
  for (const name of names) {
    try {
      Object.assign(figures, await attempt(name))
    } catch (error) {
      if (isInterrupted()) throw new Error('The run was interrupted.', { cause: error })
      const reason = error instanceof Error ? error.message : String(error)
      console.error(`\nbench: the section ${name} failed: ${reason}`)
      failed.push(name)
    }
  }
  return { figures, failed }
}
