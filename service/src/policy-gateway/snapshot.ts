import type { CompiledPolicy } from '#policies/compile.ts'

/**
 * The policies in force in one organization. Frozen: a request keeps the snapshot it was pinned to,
 * whatever is published meanwhile, and a change makes a new snapshot.
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
