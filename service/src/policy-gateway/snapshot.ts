import type { CompiledPolicy } from '#policies/compile.ts'

/**
 * What is in force in one organization. Frozen: a request takes the snapshot it finds when it starts and
 * keeps it to its end, whatever is published meanwhile; a change makes a new snapshot.
 */
export type Snapshot = Readonly<{
  organizationId: string
  epoch: number
  policies: readonly CompiledPolicy[]
}>

export const makeSnapshot = (
  organizationId: string,
  epoch: number,
  policies: readonly CompiledPolicy[],
): Snapshot => Object.freeze({ organizationId, epoch, policies: Object.freeze([...policies]) })

export const hasEnforcing = ({ policies }: Snapshot) =>
  policies.some(({ content }) => content.mode === 'enforcing')
