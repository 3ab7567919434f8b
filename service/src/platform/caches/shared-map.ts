/**
 * A map with at most `entriesMax` entries, which several owners share; what one has set, another does not find. While there
 * is room, an owner may have any number of entries. When there is none, the owner with the most entries beyond its share loses
 * the oldest of them, so that no owner can drive out what others keep within their shares. If no owner is beyond its share,
 * the owner that has set nothing for the longest time loses one.
 */
export class SharedMap<V> {
  readonly #entriesMax: number
  readonly #shareMax: number
  /** The owner that has set an entry last is the last one, and so are entries of an owner. */
  readonly #owners = new Map<string, Map<string, V>>()
  /** Owners beyond their share. Shares are large, so there are few. */
  readonly #beyond = new Set<string>()
  #size = 0

  constructor({ entriesMax, shareMax }: { entriesMax: number; shareMax: number }) {
    this.#entriesMax = entriesMax
    this.#shareMax = shareMax
  }

  get size(): number {
    return this.#size
  }

  get(owner: string, key: string): V | undefined {
    return this.#owners.get(owner)?.get(key)
  }

  /** Setting a key again makes it the newest. */
  set(owner: string, key: string, value: V) {
    const own = this.#owners.get(owner) ?? new Map<string, V>()
    this.#owners.delete(owner)
    this.#owners.set(owner, own)
    if (!own.delete(key)) this.#size++
    own.set(key, value)
    if (own.size > this.#shareMax) this.#beyond.add(owner)
    if (this.#size > this.#entriesMax) this.#dropOldest()
  }

  delete(owner: string, key: string) {
    const own = this.#owners.get(owner)
    if (!own?.delete(key)) return
    this.#size--
    if (own.size <= this.#shareMax) this.#beyond.delete(owner)
    if (own.size === 0) this.#owners.delete(owner)
  }

  #dropOldest() {
    const owner = this.#largestBeyond() ?? this.#owners.keys().next().value
    const oldest = owner === undefined ? undefined : this.#owners.get(owner)?.keys().next().value
    if (owner !== undefined && oldest !== undefined) this.delete(owner, oldest)
  }

  #largestBeyond(): string | undefined {
    let largest: string | undefined
    let most = 0
    for (const owner of this.#beyond) {
      const size = this.#owners.get(owner)?.size ?? 0
      if (size > most) [largest, most] = [owner, size]
    }
    return largest
  }
}
