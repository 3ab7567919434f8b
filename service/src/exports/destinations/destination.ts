import type { Clock } from '#platform/clock.ts'

/**
 * What a destination gets of an event: the members of its header beside those that every event has. A checkpoint of the audit log
 * (`event_type` is `checkpoint`) goes the same way.
 */
export type ExportRecord = Readonly<Record<string, unknown>> & {
  readonly event_id: string
  readonly event_type: string
  readonly created_at: string
  readonly org_id: string
  /** Of a checkpoint: the number of the last event that it covers. */
  readonly org_seq: number
}

/** A record with its JSON text, which is written once for all that need it. */
export type ExportItem = { readonly record: ExportRecord; readonly json: string }

/** What a destination does with one item. */
export type ItemResult =
  | { readonly kind: 'delivered' }
  /** The destination will never take this item: it becomes a dead letter. */
  | { readonly kind: 'refused'; readonly error: string }
  | { readonly kind: 'failed'; readonly error: string }

/** Where a batch is kept by a destination that keeps objects. */
export type StoredObject = {
  readonly key: string
  /** Of the object as it is stored, in lower-case hex. */
  readonly sha256: string
  readonly bytes: number
  /** The numbers (`org_seq`) of its first and its last record. */
  readonly first: number
  readonly last: number
}

/** What was stored for an organization within some time, for auditors who look for objects that are missing or changed. */
export type Digest = {
  readonly orgId: string
  /** RFC 3339. The time from `from` until just before `to`. */
  readonly from: string
  readonly to: string
  readonly objects: readonly [StoredObject, ...StoredObject[]]
  /** The digest before this one; null for the first. */
  readonly previous: Pick<StoredObject, 'key' | 'sha256'> | null
}

/** How sending a batch ended. Errors are one line without secrets. */
export type DeliveryOutcome =
  | { readonly kind: 'delivered'; readonly object?: StoredObject }
  /** The destination reports about each item, in the order of the batch. */
  | { readonly kind: 'itemised'; readonly items: readonly ItemResult[] }
  /** The destination is away or busy: the same batch is sent again later. */
  | { readonly kind: 'failed'; readonly error: string; readonly retryAfterMs?: number }
  /** The configuration or the destination has to be changed: tried again every five minutes. */
  | { readonly kind: 'misconfigured'; readonly error: string }
  /** The destination refuses something in the batch: smaller ones are sent until the event is found. */
  | { readonly kind: 'refused'; readonly error: string }

export type DestinationCall = {
  method: 'GET' | 'POST' | 'PUT'
  headers?: Readonly<Record<string, string>>
  body?: string | Uint8Array
  /** Only if the usual certificates are not the ones to check against. */
  tls?: { ca?: string | undefined; verify?: boolean | undefined }
  /** How large an answer may be; 64 KB where it is not given. */
  answerLimitBytes?: number
  /** Returned by the code that started the delivery, not by a destination, like the next one. */
  signal?: AbortSignal
  ports?: readonly number[]
}
export type DestinationAnswer = {
  status: number
  headers: Record<string, string | string[] | undefined>
  body: Buffer
}

export type DestinationDeps = {
  /** Calls a public address, within a deadline. It throws `EgressFailed` or `EgressBlocked`. */
  request(address: string, call: DestinationCall): Promise<DestinationAnswer>
  now: Clock
  /** Aborts when the worker stops or the lease of the sink ends. */
  signal: AbortSignal
}

type BatchLimits = {
  itemsMax: number
  /** Of the JSON of all items together. */
  bytesMax: number
}

/** A kind of destination. There is one folder for each, and one registration (`destinations.ts`). */
export type DestinationType<Config> = {
  limits: BatchLimits
  /** How long a batch that is not full waits for more; 0 where it is not given. */
  patienceMs?: number
  /** Items of one batch have the same group. */
  groupOf?(record: ExportRecord): string
  /** Where a configuration leads to; checked when it is saved. */
  addressOf(config: Config): string
  /** Sends a batch of at least one item, in its order. It may throw, which `outcomeForSink` explains. */
  send(
    config: Config,
    batch: readonly ExportItem[],
    deps: DestinationDeps,
  ): Promise<DeliveryOutcome>
  /** Stores a digest. The `object` of its outcome is the `previous` of the next one. */
  sendDigest?(config: Config, digest: Digest, deps: DestinationDeps): Promise<DeliveryOutcome>
}
