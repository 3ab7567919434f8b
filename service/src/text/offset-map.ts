/** This many runs are forgotten at a time, because taking one from the front of an array moves all others. */
const forgottenTogether = 256

/**
 * From the characters of a text that was made to those of the text it was made from, as runs. In a stepping run each
 * character starts one unit after the one before; in a flat one all of them start at the same place.
 */
export class OffsetMap {
  #starts: number[] = []
  #originals: number[] = []
  #areStepping: boolean[] = []

  /** From `start` on, up to the next run. Runs are added in order. */
  addRun(start: number, original: number, isStepping: boolean): void {
    const last = this.#starts.length - 1
    const lastStart = this.#starts[last] ?? 0
    const isContinued =
      isStepping &&
      this.#areStepping[last] === true &&
      original - start === (this.#originals[last] ?? 0) - lastStart
    if (isContinued) return
    this.#starts.push(start)
    this.#originals.push(original)
    this.#areStepping.push(isStepping)
  }

  /** A copy that goes its own way from here. */
  fork(): OffsetMap {
    const fork = new OffsetMap()
    fork.#starts = [...this.#starts]
    fork.#originals = [...this.#originals]
    fork.#areStepping = [...this.#areStepping]
    return fork
  }

  at(index: number): number {
    const run = this.#runOf(index)
    const original = this.#originals[run] ?? 0
    return this.#areStepping[run] === true ? original + index - (this.#starts[run] ?? 0) : original
  }

  /** Drops the runs that end at or before `index`. */
  forget(index: number): void {
    const run = this.#runOf(index)
    if (run < forgottenTogether) return
    this.#starts = this.#starts.slice(run)
    this.#originals = this.#originals.slice(run)
    this.#areStepping = this.#areStepping.slice(run)
  }

  /** The last run that starts at or before `index`. */
  #runOf(index: number): number {
    let low = 0
    let high = this.#starts.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((this.#starts[middle] ?? 0) <= index) low = middle
      else high = middle - 1
    }
    return low
  }
}
