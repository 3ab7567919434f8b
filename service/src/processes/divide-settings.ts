export type DividedSettings = {
  ROLES: readonly ('api' | 'worker')[]
  PORT: number
  PROCESSES: number
  BODY_MEMORY_MB: number
}

/** The largest body must fit into the part of the budget that one organization may use. */
const bodyMemoryMinMb = 128

/**
 * The settings of one of several processes. The first one also has the other roles: every background task needs to run
 * once. Memory for bodies is divided, because the machine has it once; what is counted in connections is not, because
 * the system does not divide callers evenly.
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
