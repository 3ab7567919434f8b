// Windows of an answer, as remote scorers have them: short at first, so that its first words are not held for long.

const firstSteps = [48, 64]
const usualStep = 96
/** A window ends at white space, if there is some within this many characters. */
const extensionMost = 32
/** What stands before a window is shown with it, so that a guardrail knows what it belongs to. */
const overlapMost = 160
/**
 * The last characters of a window can still change with the next one, so that what is divided by the end of a window can be
 * rewritten. A guardrail sees everything that is shorter as a whole before any of it leaves.
 */
const heldMost = 48

/** How many characters of an answer wait for guardrails at most. */
export const guardrailHold = usualStep + extensionMost + heldMost

/** A stretch of a text that guardrails are asked about; offsets of UTF-16 in that text, negative in what stands before it. */
export type AnswerWindow = {
  /** Where `text` begins: before `start`, with the overlap. */
  readonly from: number
  readonly text: string
  /** Where begins what can still change. */
  readonly newFrom: number
  readonly end: number
  /** Nothing of the text follows. */
  readonly isLast: boolean
}

const whiteSpace = /\p{White_Space}/u
const isHighSurrogate = (code: number) => code >= 0xd800 && code < 0xdc00
const isLowSurrogate = (code: number) => code >= 0xdc00 && code < 0xe000

/** Whether both halves of a character stand around this place. */
const splitsCharacter = (text: string, at: number) =>
  isHighSurrogate(text.charCodeAt(at - 1)) && isLowSurrogate(text.charCodeAt(at))

/**
 * Cuts a text that grows into windows. They depend on the text alone, never on the pieces in which it came: the same answer is
 * asked about the same way however it is sent. A window is complete when something follows it, so that the last one says that
 * it is the last.
 */
export class AnswerWindowCutter {
  readonly #before: string
  #text = ''
  #start = 0
  #number = 0

  /** `before`: what stands before the text, and is decided already. */
  constructor(before = '') {
    this.#before = before.slice(-overlapMost)
  }

  add(piece: string) {
    this.#text += piece
  }

  /** The next window that is complete; null while more text is needed, or when there is none left. */
  next(isEnded: boolean): AnswerWindow | null {
    const end = this.#findEnd()
    if (end !== null) return this.#take(end, false)
    const rest = this.#text.length
    return isEnded && rest > this.#start ? this.#take(rest, true) : null
  }

  /** All of the text that is left, as one window. */
  rest(): AnswerWindow | null {
    const rest = this.#text.length
    return rest > this.#start ? this.#take(rest, true) : null
  }

  #findEnd(): number | null {
    const least = this.#start + (firstSteps[this.#number] ?? usualStep)
    const most = least + extensionMost
    for (let at = least; at < most && at < this.#text.length; at++) {
      if (whiteSpace.test(this.#text.charAt(at))) return at
    }
    if (this.#text.length <= most) return null
    return splitsCharacter(this.#text, most) ? most - 1 : most
  }

  #take(end: number, isLast: boolean): AnswerWindow {
    const start = this.#start
    const whole = this.#before + this.#text.slice(0, end)
    const shift = this.#before.length
    const wanted = Math.max(0, start + shift - overlapMost)
    const from = splitsCharacter(whole, wanted) ? wanted + 1 : wanted
    this.#start = end
    this.#number++
    const newFrom = start === 0 ? 0 : placeOfHeld(this.#text, start)
    return { from: from - shift, text: whole.slice(from), newFrom, end, isLast }
  }
}

/** Where what a window keeps back begins, if it ends here and is not the last. */
export function placeOfHeld(text: string, end: number): number {
  const place = Math.max(0, end - heldMost)
  return splitsCharacter(text, place) ? place - 1 : place
}
