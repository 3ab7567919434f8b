/**
 * What each kind of failure means, and whether the caller may have caused it, by what was sent or by how much. `either`: the
 * failure itself says it. In an outage the model is away or overloaded, whatever the texts are.
 */
const kinds = {
  /** The model refuses this gateway: a wrong key, model or address. */
  misconfigured: { by: 'others' },

  // Of scorers.
  /** No connection, or one that broke. */
  unreachable: { by: 'others', isOutage: true },
  timeout: { by: 'either', isOutage: true },
  /** 429. */
  busy: { by: 'either', isOutage: true },
  /** 5xx, or a redirect. */
  error: { by: 'either', isOutage: true },
  /** It does not accept this request, as with 400: another text may succeed. */
  rejected: { by: 'caller' },
  /** An answer that is no answer, is incomplete or contradicts itself. */
  malformed: { by: 'caller' },
  /** It was not asked, because it failed too often just now. */
  paused: { by: 'others' },

  // Of the judge.
  /** It cannot be reached or fails, or is not asked for a moment because it has failed too often. */
  unavailable: { by: 'others', isOutage: true },
  /** It wants fewer calls. */
  throttled: { by: 'others', isOutage: true },
  late: { by: 'either', isOutage: true },
  /** It answered, but not with a verdict on every rule: the text may be why. */
  no_verdict: { by: 'caller' },

  /** It was not asked, because too many questions wait in this process, of the organization or of all organizations. */
  overloaded: { by: 'either' },
  /** It was not asked, because the texts are too long for it: trying again does not help. */
  too_long: { by: 'caller' },
} as const satisfies Record<string, Meaning>

type Meaning = { by: 'caller' | 'others' | 'either'; isOutage?: boolean }
export type FailureKind = keyof typeof kinds

export type FailureOptions = {
  cause?: unknown
  /**
   * What was sent may have caused the failure, such as an image that the scorer has to load from a slow server, or very many
   * texts.
   */
  mayBeByCaller?: boolean
}

/** Why a model that was asked about texts has said nothing. Its message never contains text of the model, nor of what it was asked about. */
export class ModelFailure<Kind extends FailureKind = FailureKind> extends Error {
  /** Also a label of metrics. */
  readonly kind: Kind
  readonly mayBeByCaller: boolean

  constructor(kind: Kind, message: string, options: FailureOptions = {}) {
    super(message, { cause: options.cause })
    this.kind = kind
    this.mayBeByCaller = options.mayBeByCaller ?? false
  }

  get #meaning(): Meaning {
    return kinds[this.kind]
  }

  /** The failure for which a paused model is not asked. */
  get #before(): ModelFailure | null {
    const { kind, cause } = this
    return kind === 'paused' && cause instanceof ModelFailure ? cause : null
  }

  /** Whether callers can cause it. */
  get isByCaller(): boolean {
    const { by } = this.#meaning
    return by === 'caller' || (by === 'either' && this.mayBeByCaller)
  }

  /**
   * Whether no caller can cause this failure by what it sends or by how much. Only then may a call pass without scores or a verdict.
   * A model that is paused because of such a failure counts as an outage, too.
   */
  get isOutage(): boolean {
    const { isOutage = false } = this.#meaning
    return this.#before?.isOutage ?? (isOutage && !this.mayBeByCaller)
  }

  /** That is no outage, and trying again does not help. It stays true while the model is paused for this reason. */
  get isMisconfigured(): boolean {
    return this.#before?.isMisconfigured ?? this.kind === 'misconfigured'
  }
}
