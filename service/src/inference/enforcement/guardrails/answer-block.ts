import type { Block } from '#formats/answer.ts'
import { GuardrailFailure } from '#moderation/guardrails/guardrail-failure.ts'
import { applyEdits, type TextEdit } from '#moderation/guardrails/text-edits.ts'

import { type AnswerWindow, AnswerWindowCutter, placeOfHeld } from './answer-windows.ts'

/** An edit, and the number of the window that it was decided with. */
type DecidedEdit = TextEdit & { readonly window: number }

/**
 * The text of one block of an answer while guardrails decide about it. Prose and refusals leave window by window. Reasoning and
 * the arguments of calls are asked about as a whole and wait for it: whether reasoning is sealed, and whether arguments are JSON, is
 * known only at their end.
 */
export class AnswerBlock {
  readonly type: Block['type']
  readonly #cutter: AnswerWindowCutter
  readonly #before: AnswerBlock | null
  readonly #isWhole: boolean
  #text = ''
  #isEnded = false
  #isSealed = false
  /** In the order of the text, without a character in common. */
  #edits: DecidedEdit[] = []
  #decided = 0
  /** What stands before this place is final. */
  #final = 0
  /** What stands before this place has left. */
  #left = 0

  /** `before`: the block of the same kind before it, or the beginning of the answer that the caller has written. */
  constructor(type: Block['type'], before: AnswerBlock | string | null) {
    this.type = type
    this.#before = typeof before === 'string' ? null : before
    this.#isWhole = type === 'reasoning' || type === 'tool_call'
    const shown = typeof before === 'string' ? before : before ? before.#text : ''
    this.#cutter = new AnswerWindowCutter(shown)
  }

  get length(): number {
    return this.#text.length
  }

  add(text: string) {
    if (this.#isEnded) return
    this.#text += text
    this.#cutter.add(text)
  }

  /** Nothing is added any more. */
  end({ isSealed = false } = {}) {
    this.#isEnded = true
    if (isSealed) this.#isSealed = true
  }

  /** The next window that guardrails are to be asked about. */
  nextWindow(): AnswerWindow | null {
    if (this.#isWhole) return this.#isEnded ? this.#cutter.rest() : null
    return this.#cutter.next(this.#isEnded)
  }

  /**
   * Takes what a guardrail wants rewritten in a window, before `finish` is called for it. Throws a GuardrailFailure where that
   * cannot be done.
   */
  rewrite(window: AnswerWindow, edits: readonly TextEdit[]) {
    const moved = edits.map(({ start, end, replacement }) => ({
      start: start + window.from,
      end: end + window.from,
      replacement,
    }))
    const fresh = moved.filter(({ start, end }) => !this.#isRewritten(start, end))
    if (fresh.some(({ start }) => start < this.#final)) throw hasLeft()
    const merged = fresh.reduce((all, edit) => this.#merge(all, edit), this.#edits)
    if (this.type === 'tool_call') requireJson(this.#text, merged)
    this.#edits = merged
  }

  /** The window is decided. */
  finish({ end, isLast }: AnswerWindow) {
    this.#decided++
    const place = isLast ? end : Math.max(this.#final, placeOfHeld(this.#text, end))
    const divided = this.#edits.find((edit) => edit.start < place && place < edit.end)
    this.#final = divided ? divided.start : place
  }

  /** What may leave now of the text up to this place, as it was rewritten. */
  take(upTo: number): string {
    const to = Math.min(upTo, this.#final)
    const from = this.#left
    if (to <= from) return ''
    this.#left = to
    // A seal would not fit a text that was changed; the provider reads the reasoning from the seal.
    if (this.#isSealed && this.#edits.length > 0) return ''
    return this.#write(from, to)
  }

  /** Whether everything before this place has left. */
  hasLeft(upTo: number): boolean {
    return this.#left >= upTo
  }

  #write(from: number, to: number): string {
    let written = ''
    let at = from
    for (const { start, end, replacement } of this.#edits) {
      if (end <= from || start >= to) continue
      if (start >= from) written += this.#text.slice(at, start) + replacement
      at = Math.min(end, to)
    }
    return written + this.#text.slice(at, to)
  }

  /** Whether what a guardrail has found was rewritten with an earlier window: it is shown as the model has written it. */
  #isRewritten(start: number, end: number): boolean {
    if (end <= 0) {
      // The caller's own beginning of the answer was decided with the request.
      if (!this.#before) return true
      const { length } = this.#before
      return this.#before.#isRewritten(start + length, end + length)
    }
    return (
      start < this.#final &&
      this.#edits.some((edit) => edit.start <= start && end <= edit.end && edit.end <= this.#final)
    )
  }

  /** Stretches with a character in common become one: of a window before by the new text, of the same window by the first. */
  #merge(edits: readonly DecidedEdit[], edit: TextEdit): DecidedEdit[] {
    const window = this.#decided
    const touched = edits.filter(({ start, end }) => start < edit.end && edit.start < end)
    const others = edits.filter((each) => !touched.includes(each))
    const first = touched.find((each) => each.window === window)
    const merged = {
      start: Math.min(edit.start, ...touched.map(({ start }) => start)),
      end: Math.max(edit.end, ...touched.map(({ end }) => end)),
      replacement: (first ?? edit).replacement,
      window,
    }
    return [...others, merged].toSorted((one, other) => one.start - other.start)
  }
}

const hasLeft = () =>
  new GuardrailFailure(
    'unwritable',
    'The guardrail wants something rewritten that has left already.',
  )

/** What was no JSON before need not become any. */
function requireJson(text: string, edits: readonly TextEdit[]) {
  if (!isJsonText(text) || isJsonText(applyEdits(text, edits))) return
  throw new GuardrailFailure(
    'unwritable',
    'The arguments of a tool call would no longer be JSON if the guardrail rewrote them.',
  )
}

export function isJsonText(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
