import type { Lease, Scope } from './limits.ts'

type Where = 'shared' | 'local'

/** The calls of this process that are running, and where their slot was given. */
export function createOpenSlots() {
  const slots = new Map<string, { lease: Lease; where: Where }>()

  return {
    isEmpty: () => slots.size === 0,
    open(lease: Lease & { leaseMs: number }, where: Where) {
      if (lease.leaseMs > 0) slots.set(lease.leaseId, { lease, where })
    },
    close: ({ leaseId }: { leaseId: string }) => void slots.delete(leaseId),
    isOpen: ({ leaseId }: { leaseId: string }) => slots.has(leaseId),
    byOrganization(): Lease[][] {
      const groups = Map.groupBy(slots.values(), ({ lease }) => lease.organizationId)
      return [...groups.values()].map((group) => group.map(({ lease }) => lease))
    },
    /** How many slots of each scope were given where everybody counts. */
    sharedBy(place: Lease): Record<Scope, number> {
      const shared = [...slots.values()]
        .filter(({ where }) => where === 'shared')
        .map(({ lease }) => lease)
        .filter(({ organizationId }) => organizationId === place.organizationId)
      const ofProject = shared.filter(({ projectId }) => projectId === place.projectId)
      return {
        organization: shared.length,
        project: ofProject.length,
        key: ofProject.filter(({ keyId }) => keyId === place.keyId).length,
      }
    },
  }
}
export type OpenSlots = ReturnType<typeof createOpenSlots>
