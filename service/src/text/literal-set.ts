import { finish, type Steps } from '#platform/steps/steps.ts'

import { sortInSteps } from './sort-in-steps.ts'

/** How much of a set is built in one step. */
const literalsPerStep = 256
const statesPerStep = 8192

/** A scan of a text that grows. */
export type LiteralScan = {
  /** Reads more; calls back for every literal that ends, with the position where it starts in the text. */
  read(piece: string, onHit: (literal: number, start: number) => void): void
  /** How many of the last characters may still become a literal. */
  readonly held: number
}

/** Collects which literals are in a text that grows, each once. */
export type LiteralCollection = {
  read(piece: string): void
  /** Their numbers, in order. */
  readonly found: readonly number[]
}

/**
 * Finds many literals in one pass (Aho-Corasick). The states are the beginnings of literals. They are numbered level
 * by level, so that the children of a state are neighbours: a state needs a few numbers in flat arrays and no map
 * of its own, whatever characters occur.
 */
export class LiteralSet {
  /** The different literals in order, and which numbers the caller knows each of them by. */
  #literals: readonly string[] = []
  #numbers: readonly (readonly number[])[] = []
  /** Numbers of the empty literal, which is in every text. */
  #empty: readonly number[] = []
  #longest = 0
  /** The character that leads to a state from its parent. */
  #units = new Uint16Array(0)
  /** Children of state s: from firstChild[s] up to firstChild[s + 1]. */
  #firstChild = new Int32Array(0)
  #depth = new Int32Array(0)
  /** The state of the longest proper ending that is also a beginning of a literal. */
  #fallback = new Int32Array(0)
  /** Which literal ends in a state, or -1. */
  #ending = new Int32Array(0)
  /** The next state along the fallbacks in which a literal ends; 0: none. */
  #nextEnding = new Int32Array(0)
  /** Children of the first state by character: most text never leaves that state. */
  readonly #firstSteps = new Int32Array(256)

  constructor(literals: readonly string[]) {
    finish(this.#build(literals))
  }

  /** Thousands of long literals take too long for one step. */
  static *buildInSteps(literals: readonly string[]): Steps<LiteralSet> {
    const set = new LiteralSet([])
    yield* set.#build(literals)
    return set
  }

  get longest(): number {
    return this.#longest
  }

  *#build(literals: readonly string[]): Steps<void> {
    const numbers = yield* numberLiterals(literals)
    this.#empty = numbers.get('') ?? []
    numbers.delete('')
    this.#literals = yield* sortInSteps([...numbers.keys()])
    this.#numbers = this.#literals.map((literal) => numbers.get(literal) ?? [])
    this.#longest = this.#literals.reduce((most, { length }) => Math.max(most, length), 0)

    const states = yield* countStates(this.#literals)
    this.#units = new Uint16Array(states)
    this.#firstChild = new Int32Array(states + 1)
    this.#depth = new Int32Array(states)
    this.#fallback = new Int32Array(states)
    this.#ending = new Int32Array(states).fill(-1)
    this.#nextEnding = new Int32Array(states)
    yield* this.#addStates(states)
    yield* this.#addFallbacks(states)
  }

  scan(): LiteralScan {
    let state = 0
    let position = 0
    let hasStarted = false
    const depth = this.#depth
    return {
      read: (piece, onHit) => {
        if (!hasStarted) for (const literal of this.#empty) onHit(literal, 0)
        hasStarted = true
        for (let at = 0; at < piece.length; at++) {
          state = this.#step(state, piece.charCodeAt(at))
          if (state !== 0) this.#report(state, position + at + 1, onHit)
        }
        position += piece.length
      },
      get held() {
        return depth[state] ?? 0
      },
    }
  }

  collect(): LiteralCollection {
    const found = [...this.#empty]
    const seen = new Set<number>()
    let state = 0
    return {
      read: (piece) => {
        for (let at = 0; at < piece.length; at++) {
          state = this.#step(state, piece.charCodeAt(at))
          let end = this.#firstEnding(state)
          // What ends in a state ends there every time: a state is looked at once, and so is all behind it.
          while (end !== 0 && !seen.has(end)) {
            seen.add(end)
            found.push(...this.#numbersAt(end))
            end = this.#nextEnding[end] ?? 0
          }
        }
      },
      get found() {
        return found.toSorted((a, b) => a - b)
      },
    }
  }

  /** The numbers of the literals that are in the text, in order. */
  hits(text: string): readonly number[] {
    const collection = this.collect()
    collection.read(text)
    return collection.found
  }

  #numbersAt(state: number): readonly number[] {
    return this.#numbers[this.#ending[state] ?? -1] ?? []
  }

  #firstEnding(state: number): number {
    return (this.#ending[state] ?? -1) >= 0 ? state : (this.#nextEnding[state] ?? 0)
  }

  #report(state: number, position: number, onHit: (literal: number, start: number) => void): void {
    let end = this.#firstEnding(state)
    while (end !== 0) {
      const start = position - (this.#depth[end] ?? 0)
      for (const literal of this.#numbersAt(end)) onHit(literal, start)
      end = this.#nextEnding[end] ?? 0
    }
  }

  #step(from: number, unit: number): number {
    let state = from
    while (state !== 0) {
      const child = this.#childOf(state, unit)
      if (child !== 0) return child
      state = this.#fallback[state] ?? 0
    }
    return unit < 256 ? (this.#firstSteps[unit] ?? 0) : this.#childOf(0, unit)
  }

  /** The child of a state that a character leads to; 0: none. */
  #childOf(state: number, unit: number): number {
    let low = this.#firstChild[state] ?? 0
    let high = (this.#firstChild[state + 1] ?? 0) - 1
    while (low <= high) {
      const middle = (low + high) >> 1
      const found = this.#units[middle] ?? 0
      if (found === unit) return middle
      if (found < unit) low = middle + 1
      else high = middle - 1
    }
    return 0
  }

  /** A state stands for a range of the ordered literals: those that begin alike. Its children divide the range. */
  *#addStates(states: number): Steps<void> {
    const from = new Int32Array(states)
    const until = new Int32Array(states)
    until[0] = this.#literals.length
    let count = 1
    let seen = 0
    for (let state = 0; state < states; state++) {
      this.#firstChild[state] = count
      const depth = this.#depth[state] ?? 0
      const end = until[state] ?? 0
      for (let literal = from[state] ?? 0; literal < end; literal++) {
        if (++seen % statesPerStep === 0) yield
        const text = this.#literals[literal] ?? ''
        if (text.length === depth) {
          this.#ending[state] = literal
          continue
        }
        const unit = text.charCodeAt(depth)
        if (count === this.#firstChild[state] || this.#units[count - 1] !== unit) {
          this.#units[count] = unit
          this.#depth[count] = depth + 1
          from[count] = literal
          if (state === 0 && unit < 256) this.#firstSteps[unit] = count
          count++
        }
        until[count - 1] = literal + 1
      }
    }
    this.#firstChild[states] = count
  }

  /** States are numbered level by level, so everything a state falls back to is ready before it. */
  *#addFallbacks(states: number): Steps<void> {
    for (let state = 0; state < states; state++) {
      if (state % statesPerStep === 0) yield
      const end = this.#firstChild[state + 1] ?? 0
      for (let child = this.#firstChild[state] ?? 0; child < end; child++) {
        const fallback =
          state === 0 ? 0 : this.#step(this.#fallback[state] ?? 0, this.#units[child] ?? 0)
        this.#fallback[child] = fallback
        this.#nextEnding[child] = this.#firstEnding(fallback)
      }
    }
  }
}

/** The different literals, each with the numbers by which the caller knows it. */
function* numberLiterals(literals: readonly string[]): Steps<Map<string, number[]>> {
  const numbers = new Map<string, number[]>()
  for (const [number, literal] of literals.entries()) {
    if (number % literalsPerStep === 0) yield
    const same = numbers.get(literal)
    if (same) same.push(number)
    else numbers.set(literal, [number])
  }
  return numbers
}

/** The first state, and one for every character by which a literal differs from the one before it in order. */
function* countStates(literals: readonly string[]): Steps<number> {
  let states = 1
  let before = ''
  for (const [index, literal] of literals.entries()) {
    if (index % literalsPerStep === 0) yield
    let common = 0
    while (common < before.length && before.charCodeAt(common) === literal.charCodeAt(common))
      common++
    states += literal.length - common
    before = literal
  }
  return states
}
