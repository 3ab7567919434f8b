export type Share = {
  /** How many places an organization may have. */
  perOrganization: number
  /** How many places are given away under this rule. */
  places: number
}

/**
 * How a worker gives away its places: the fewer are left, the fewer has an organization. Destinations that are slow keep their places
 * for long, and a few organizations with several of them would otherwise have all of them. The last quarter is for organizations
 * that have none.
 */
export function fairShare(taken: number, capacity: number, perOrganization: number): Share {
  const [half, threeQuarters] = [Math.ceil(capacity / 2), Math.ceil((capacity * 3) / 4)]
  if (taken < half) return { perOrganization, places: half - taken }
  if (taken < threeQuarters) {
    return { perOrganization: Math.ceil(perOrganization / 2), places: threeQuarters - taken }
  }
  return { perOrganization: 1, places: Math.max(0, capacity - taken) }
}
