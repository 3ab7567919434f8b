/** Counts the calls of this process whose credits are being held, or are held and not settled yet. */
export function createHeldCalls() {
  const open = new Set<string>()
  let onLastClosed = () => {}
  return {
    add: (id: string) => void open.add(id),
    close(id: string) {
      open.delete(id)
      if (open.size === 0) onLastClosed()
    },
    count: () => open.size,
    async allClosed() {
      if (open.size > 0) await new Promise<void>((resolve) => (onLastClosed = resolve))
    },
  }
}
