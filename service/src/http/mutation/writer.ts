import type { Endpoint } from '@gatehouse/contract/endpoint'

/** How a request may change an object: as it is, only by taking it over, or not at all. */
type Judgement = 'allowed' | 'taken_over' | 'refused'

type Write = { readonly set: string | null; readonly takesOver: boolean }

/**
 * Who may change an object that the set `managedBy` manages, or null none: a request of the same set, and a request of none where
 * none does. `take_over=true` makes the set of the request, or none, the one that manages it
 * (docs/specification/managed-objects.md#who-may-change-an-object).
 */
export function judgeWrite(managedBy: string | null, { set, takesOver }: Write): Judgement {
  if (set === managedBy) return 'allowed'
  return takesOver ? 'taken_over' : 'refused'
}

/** Who makes a change, as its request says. It knows whether it was asked, so that no endpoint can forget to. */
export class ObjectWriter {
  readonly #how: Endpoint['managed']
  readonly #write: Write
  #isAsked = false

  constructor(how: Endpoint['managed'], write: Write) {
    this.#how = how
    this.#write = write
  }

  /** The set that manages what the request creates; null: none. */
  get set(): string | null {
    this.#isAsked = true
    return this.#write.set
  }

  get takesOver(): boolean {
    return this.#write.takesOver
  }

  judge(managedBy: string | null): Judgement {
    this.#isAsked = true
    if (this.#how === undefined)
      throw new Error('the contract does not say that objects with sets are changed')
    return this.#how === 'exempt' ? 'allowed' : judgeWrite(managedBy, this.#write)
  }

  /** Called before a change is committed. */
  requireAsked() {
    const mustAsk = this.#how === 'create' || this.#how === 'change'
    if (mustAsk && !this.#isAsked)
      throw new Error('a change did not ask which set manages its object')
  }
}

/** The members of a request that say who makes it; the schemas of the contract have checked them. */
export function readWriter(
  endpoint: Endpoint,
  input: { headers: unknown; query: unknown; body: unknown },
) {
  const { 'X-Gatehouse-Set': set = null } = (input.headers ?? {}) as { 'X-Gatehouse-Set'?: string }
  const { take_over: takesOver = false } = (input.query ?? {}) as { take_over?: boolean }
  const isExempt = endpoint.exemptFromSet?.isMet(input.body) === true
  return new ObjectWriter(isExempt ? 'exempt' : endpoint.managed, { set, takesOver })
}
