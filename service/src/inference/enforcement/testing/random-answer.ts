import type { Json } from '#formats/answer.ts'
import { createText, type Random } from '#policies/guard/testing/random-case.ts'

/** A part of a text that rules judge. */
export type Said = { channel: string; text: string }

/** One character as it is written, and what it adds to the text of a channel, if anything. */
type Unit = { raw: string; channel: string; text: string }

/** Characters that are written together, and what they say. */
export type Part = { raw: string; says: readonly Said[] }

/** What a model says, before a format writes it. `id` is the channel of its text. */
export type Block =
  | { kind: 'text' | 'reasoning' | 'refusal' | 'unknown'; id: string; text: string }
  | Call
export type Call = { kind: 'call'; id: string; name: string; units: readonly Unit[] }

const kinds = ['text', 'text', 'text', 'reasoning', 'refusal', 'call', 'call', 'unknown'] as const
const names = ['look', 'abc', 'fetch', 'ca b', '\u200bfi', 'xyz', 'send']
const numbers = [0, 7, -3, 2.5, 4_111_111_111_111_111, true, false, null]

/** Blocks of all kinds. Their texts have characters that combine, are removed, replaced or half of a pair. */
export function createAnswer(random: Random, writeText = createText): Block[] {
  return Array.from({ length: random.below(5) }, (_, number): Block => {
    const kind = random.pick(kinds)
    const id = `block${number}`
    // Texts that no delta brings are judged once if they are equal; these never are, so that all formats judge them.
    if (kind === 'unknown') return { kind, id, text: `${writeText(random)}q${number}` }
    if (kind !== 'call') return { kind, id, text: writeText(random) }
    const units = new JsonWriter(id, random, writeText).write()
    return { kind, id, name: random.pick(names), units }
  })
}

/** Writes the arguments of a call in one of the many ways that JSON allows. Every key and value is a text. */
class JsonWriter {
  readonly #id: string
  readonly #random: Random
  readonly #writeText: (random: Random) => string
  #units: Unit[] = []
  #count = 0

  constructor(id: string, random: Random, writeText: (random: Random) => string) {
    this.#id = id
    this.#random = random
    this.#writeText = writeText
  }

  write(): Unit[] {
    this.#object(2)
    // Some readers take more after the last bracket for a mistake.
    while (this.#units.at(-1)?.raw !== '}') this.#units.pop()
    return this.#units
  }

  #object(depth: number) {
    this.#list('{}', (position) => {
      // An object would put keys that are numbers first.
      this.#string(`k${position}${this.#shortText()}`)
      this.#punctuate(':')
      this.#value(depth - 1)
    })
  }

  #value(depth: number) {
    if (depth > 0 && this.#random.isOneIn(4)) return this.#object(depth)
    if (depth > 0 && this.#random.isOneIn(5)) return this.#list('[]', () => this.#value(depth - 1))
    if (this.#random.isOneIn(4)) return this.#word(JSON.stringify(this.#random.pick(numbers)))
    this.#string(this.#random.isOneIn(2) ? this.#shortText() : this.#writeText(this.#random))
  }

  #list(brackets: string, writeItem: (position: number) => void) {
    this.#punctuate(brackets.charAt(0))
    const count = this.#random.below(4)
    for (let position = 0; position < count; position++) {
      if (position > 0) this.#punctuate(',')
      writeItem(position)
    }
    this.#punctuate(brackets.charAt(1))
  }

  #shortText(): string {
    return this.#writeText(this.#random).slice(0, this.#random.below(5))
  }

  #punctuate(raw: string) {
    const space = this.#random.isOneIn(6) ? this.#random.pick([' ', '\n', '\t  ']) : ''
    for (const character of raw + space) this.#units.push({ raw: character, channel: '', text: '' })
  }

  #word(word: string) {
    const channel = this.#nextChannel()
    for (const raw of word) this.#units.push({ raw, channel, text: raw })
  }

  #string(text: string) {
    const channel = this.#nextChannel()
    this.#units.push({ raw: '"', channel: '', text: '' })
    for (let at = 0; at < text.length; at++) {
      const unit = text.charAt(at)
      const written = this.#escape(unit)
      // Half an escape says nothing yet.
      for (let index = 0; index < written.length; index++) {
        const isLast = index === written.length - 1
        this.#units.push({ raw: written.charAt(index), channel, text: isLast ? unit : '' })
      }
    }
    this.#units.push({ raw: '"', channel: '', text: '' })
  }

  #escape(unit: string): string {
    if (this.#random.isOneIn(6)) {
      const hex = unit.charCodeAt(0).toString(16).padStart(4, '0')
      return `\\u${this.#random.isOneIn(2) ? hex : hex.toUpperCase()}`
    }
    return /[\ud800-\udfff]/.test(unit) ? unit : JSON.stringify(unit).slice(1, -1)
  }

  #nextChannel(): string {
    return `${this.#id}#${this.#count++}`
  }
}

/** The whole of what a block says. */
export const wholeOf = (block: Block): Part => joinUnits(unitsOf(block))

/** The name of a function is one text, however often it is called. */
export const nameOf = ({ name }: Call): Said => ({ channel: `name ${name}`, text: name })

/** The JSON of a call's arguments as an object. */
export const inputOf = (block: Block): Json => JSON.parse(wholeOf(block).raw) as Json

/** The block in pieces of any length. */
export function cutBlock(block: Block, random: Random): Part[] {
  const units = unitsOf(block)
  const longest = random.pick([1, 8, 8, 20, 20, 200])
  const parts: Part[] = []
  for (let at = 0; at < units.length;) {
    const length = 1 + random.below(longest)
    parts.push(joinUnits(units.slice(at, at + length)))
    at += length
  }
  return parts
}

function unitsOf(block: Block): readonly Unit[] {
  if (block.kind === 'call') return block.units
  const { id, text } = block
  return Array.from({ length: text.length }, (_, at) => {
    const raw = text.charAt(at)
    return { raw, channel: id, text: raw }
  })
}

export function joinParts(parts: readonly Part[]): Part {
  return {
    raw: parts.map(({ raw }) => raw).join(''),
    says: joinSaid(parts.flatMap(({ says }) => says)),
  }
}

function joinUnits(units: readonly Unit[]): Part {
  return { raw: units.map(({ raw }) => raw).join(''), says: joinSaid(units) }
}

/** One after another of the same channel become one. */
export function joinSaid(all: readonly Said[]): Said[] {
  const joined: Said[] = []
  for (const { channel, text } of all) {
    if (text === '') continue
    const last = joined.at(-1)
    if (last?.channel === channel) last.text += text
    else joined.push({ channel, text })
  }
  return joined
}
