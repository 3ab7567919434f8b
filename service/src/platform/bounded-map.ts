/**
 * A map with at most `entriesMax` entries: setting one more drops the entry that was set longest ago.
 * Setting a key again makes it the newest.
 */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly #entriesMax: number
  readonly #onDropped: ((key: K, value: V) => void) | undefined

  constructor(entriesMax: number, onDropped?: (key: K, value: V) => void) {
    super()
    this.#entriesMax = entriesMax
    this.#onDropped = onDropped
  }

  override set(key: K, value: V): this {
    this.delete(key)
    super.set(key, value)
    if (this.size > this.#entriesMax) this.#dropOldest()
    return this
  }

  #dropOldest() {
    const [oldest] = this
    if (!oldest) return
    this.delete(oldest[0])
    this.#onDropped?.(...oldest)
  }
}
