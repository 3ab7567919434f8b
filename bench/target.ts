/** Something that answers chat completions. */
export type Target = {
  name: string
  url: string
  headers: Record<string, string>
  /** Taken in turn, one per request. */
  keys: readonly string[]
  /** The processes whose time is the target's own. */
  pids: readonly number[]
  /** What a reader of its figures must know about this run, if anything. */
  caveat?(): Promise<string | undefined>
  stop(): Promise<unknown>
}

/** A target that cannot be had here, with the reason. */
export class Unavailable extends Error {}
