/** Bodies of at most this size count as small. */
const smallBodyBytes = 64 * 1024
/** This part of the budget is kept for small bodies, so that large ones cannot keep all other callers out. */
const keptForSmallBytes = 32 * 1024 * 1024

/** The bytes that one reader may keep in memory. */
export type Reservation = {
  /** Raises the reservation to this many bytes in total. Returns false and changes nothing if there is no room. */
  grow(bytes: number): boolean
  release(): void
}

type Usage = { bytes: number; largeBytes: number; readers: number }

/**
 * The memory for request bodies while they are received, in total and per organization. An organization's large bodies may use
 * a quarter of it, and its small bodies another quarter. `readersMax` limits how many bodies an organization may be sending at
 * once.
 */
export function createBodyBudget(totalBytes: number) {
  const organizationMaxBytes = totalBytes / 4
  const organizations = new Map<string, Usage>()
  const used = { bytes: 0, largeBytes: 0 }
  const largePart = (bytes: number) => (bytes > smallBodyBytes ? bytes : 0)

  return {
    usedBytes: () => used.bytes,
    /** Null if the organization already has `readersMax` readers. */
    open(organizationId: string, readersMax: number): Reservation | null {
      const usage = organizations.get(organizationId) ?? { bytes: 0, largeBytes: 0, readers: 0 }
      if (usage.readers >= readersMax) return null
      organizations.set(organizationId, usage)
      usage.readers++
      let reserved = 0

      function change(bytes: number) {
        const addedLarge = largePart(bytes) - largePart(reserved)
        usage.bytes += bytes - reserved
        usage.largeBytes += addedLarge
        used.largeBytes += addedLarge
        used.bytes += bytes - reserved
        reserved = bytes
      }

      let isOpen = true
      return {
        grow(bytes) {
          const addedLarge = largePart(bytes) - largePart(reserved)
          const hasRoomForLarge =
            usage.largeBytes + addedLarge <= organizationMaxBytes &&
            used.largeBytes + addedLarge <= totalBytes - keptForSmallBytes
          const addedSmall = bytes - reserved - addedLarge
          const hasRoomForSmall =
            usage.bytes - usage.largeBytes + addedSmall <= organizationMaxBytes
          const hasRoom =
            used.bytes + bytes - reserved <= totalBytes &&
            (largePart(bytes) === 0 ? hasRoomForSmall : hasRoomForLarge)
          if (hasRoom) change(bytes)
          return hasRoom
        },
        release() {
          if (!isOpen) return
          isOpen = false
          change(0)
          usage.readers--
          if (usage.readers === 0) organizations.delete(organizationId)
        },
      }
    },
  }
}
export type BodyBudget = ReturnType<typeof createBodyBudget>
