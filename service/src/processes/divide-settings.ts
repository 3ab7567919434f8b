export type DividedSettings = {
  ROLES: readonly ('api' | 'worker')[]
  PORT: number
  PROCESSES: number
  BODY_MEMORY_MB: number
}

/** The largest body must fit into the part of the budget that one organization may use. */
const bodyMemoryMinMb = 128

/**
 * The settings of one of several processes. Only the first process has the other roles too, because each background task must
 * run only once. The memory for bodies is divided, because the processes share the machine's memory. Numbers of connections are
 * not divided, because the operating system does not spread callers evenly.
 */
export function divideSettings<Settings extends DividedSettings>(
  settings: Settings,
  { number, port }: { number: number; port: number },
): Settings {
  const share = Math.floor(settings.BODY_MEMORY_MB / settings.PROCESSES)
  return {
    ...settings,
    ROLES: number === 1 ? settings.ROLES : ['api'],
    PORT: port,
    BODY_MEMORY_MB: Math.max(bodyMemoryMinMb, share),
  }
}
