import { JsonTexts } from '#formats/texts/json-texts.ts'
import type { Steps } from '#platform/steps/steps.ts'
import { createEntityCounter } from '#redaction/entity-counts.ts'
import type { EntityKind } from '#redaction/entity.ts'
import type { ValueFinder } from '#redaction/value-finder.ts'

/**
 * Counts findings in the arguments of a tool call. The arguments are JSON that arrives in pieces, and JSON escapes hide
 * nothing.
 */
export class ArgumentsCounter {
  readonly #counts: Map<EntityKind, number>
  readonly #texts = new JsonTexts()
  /** The string of the arguments that is being read. */
  #open: { number: number; counter: ValueFinder } | null = null

  constructor(counts: Map<EntityKind, number>) {
    this.#counts = counts
  }

  push(json: string): void {
    this.#texts.feed(json, {
      add: (number, text) => this.#counterOf(number).push(text),
      end: () => this.end(),
    })
  }

  end(): void {
    this.#open?.counter.end()
    this.#open = null
  }

  #counterOf(number: number): ValueFinder {
    if (this.#open?.number === number) return this.#open.counter
    this.end()
    const counter = createEntityCounter(this.#counts)
    this.#open = { number, counter }
    return counter
  }
}

/** How much is read in one step. */
const readAtOnce = 4096

/** Reads more of the arguments. A long piece takes several steps. */
export function* countArguments(counter: ArgumentsCounter, json: string): Steps<void> {
  for (let at = 0; at < json.length; at += readAtOnce) {
    counter.push(json.slice(at, at + readAtOnce))
    if (json.length > readAtOnce) yield
  }
}
