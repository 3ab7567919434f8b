/** Without them, the code that adds to the line keeps it short. */
type Bounds = { waitingMax?: number; waitingOfOneMax?: number }

/**
 * What waits, in a line for each owner, such as an organization. Owners take turns, so that one with very much delays another by
 * one item and not by all of its own: the owner that was served least recently is next.
 */
export function createFairLine<Item>(bounds: Bounds = {}) {
  const { waitingMax = Infinity, waitingOfOneMax = Infinity } = bounds
  /** The owner that was served last is the last in the map. */
  const lines = new Map<string, Set<Item>>()
  let size = 0

  function remove(owner: string, item: Item): boolean {
    const line = lines.get(owner)
    if (!line?.delete(item)) return false
    size--
    if (line.size === 0) lines.delete(owner)
    return true
  }

  return {
    size: () => size,
    /** Those who wait, the one that was served least recently first. */
    owners: () => [...lines.keys()],
    items: () => [...lines.values()].flatMap((line) => [...line]),
    /** What has no room for one more: the owner's own line, or all of them together. */
    fullFor(owner: string): 'own' | 'all' | null {
      if ((lines.get(owner)?.size ?? 0) >= waitingOfOneMax) return 'own'
      return size >= waitingMax ? 'all' : null
    },
    add(owner: string, item: Item) {
      lines.set(owner, (lines.get(owner) ?? new Set()).add(item))
      size++
    },
    /** To the head of its owner's line. */
    putBack(owner: string, item: Item) {
      lines.set(owner, new Set([item, ...(lines.get(owner) ?? [])]))
      size++
    },
    /** Whether it was still waiting. */
    remove,
    /** The first item of the owner whose turn it is, or of this one. */
    takeNext(owner: string | undefined = lines.keys().next().value): Item | undefined {
      const line = owner === undefined ? undefined : lines.get(owner)
      if (owner === undefined || !line) return undefined
      const [item] = line
      lines.delete(owner)
      lines.set(owner, line)
      if (item !== undefined) remove(owner, item)
      return item
    },
  }
}
