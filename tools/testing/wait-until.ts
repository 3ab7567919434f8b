import { vi } from 'vitest'

/** As `vi.waitUntil`, but with time for a loaded machine: the default there is one second. */
export const waitUntil = <T>(check: () => T | Promise<T>) =>
  vi.waitUntil(check, { timeout: 20_000, interval: 5 })
