/** A server that answers chat completions. */
export type Target = {
  name: string
  url: string
  /** All addresses, where there are several processes; requests go to them in turn. */
  urls?: readonly string[]
  headers: Record<string, string>
  /** Used in turn, one per request. */
  keys: readonly string[]
  /** The processes whose CPU time and memory are measured, with all their descendants. */
  pids: readonly number[]
  /** The process that does what follows from the calls, if the target has one. */
  workerPid?: number
  /** Whether each request gets texts that were never sent before. */
  isFresh?: boolean
  /** What makes the figures of this run not comparable, if anything. */
  caveat?(): Promise<string | undefined>
  stop(): Promise<unknown>
}

/** The error of a target that cannot be installed on this machine. */
export class Unavailable extends Error {}
