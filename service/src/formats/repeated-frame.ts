import type { RawFrame } from './framing.ts'

/** What JSON writes differently in a string than it is read. */
// oxlint-disable-next-line no-control-regex
const escaped = /["\\\u0000-\u001f]/

/**
 * Most frames of an answer are the frame before with another text. Such a frame need not be parsed: its text stands where
 * the text of the other one stood.
 */
export class RepeatedFrame {
  #event = ''
  #before = ''
  /** Empty: there is no frame to compare with. */
  #after = ''

  /** The text of a frame that is the learned one but for its text; undefined for any other frame. */
  textOf({ event, data }: RawFrame): string | undefined {
    const end = data.length - this.#after.length
    const isSame =
      this.#after !== '' &&
      end > this.#before.length &&
      event === this.#event &&
      // Compared at once: `startsWith` and `endsWith` compare character by character.
      data.slice(0, this.#before.length) === this.#before &&
      data.slice(end) === this.#after
    if (!isSame) return undefined
    const text = data.slice(this.#before.length, end)
    return escaped.test(text) ? undefined : text
  }

  /**
   * Learns a frame one of whose strings is `text`. Without escapes a string of JSON is found as it is written; if it is
   * found more than once, it is unknown which of them is the text, and nothing is learned.
   */
  learn({ event, data }: RawFrame, text: string) {
    this.forget()
    if (text === '' || escaped.test(text) || data.includes('\\')) return
    const string = `"${text}"`
    const at = data.indexOf(string)
    if (at === -1 || data.includes(string, at + 1)) return
    this.#event = event
    this.#before = data.slice(0, at + 1)
    this.#after = data.slice(at + string.length - 1)
  }

  forget() {
    this.#after = ''
  }
}
