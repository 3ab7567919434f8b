import type { FrameText, FrameTexts } from '#formats/texts/frame-texts.ts'
import { originOf } from '#formats/texts/text-collector.ts'
import { joinsWords, tailLength, type TextView } from '#formats/texts/text-views.ts'
import type { Passage } from '#text/passage.ts'

/** The most of an answer that is kept for rules that are evaluated at its end. */
const lengthMax = 1024 * 1024

/** The texts of an answer so far, channel by channel. */
export class AnswerTexts {
  readonly #texts = new Map<string, string>()
  /** The texts in other readings. */
  readonly #views = new Map<string, string>()
  /** Channels in which a text goes on that was taken to have ended. Each begins with the end of that text. */
  readonly #resumed = new Set<string>()
  #length = 0

  add({ texts }: FrameTexts) {
    for (const text of texts) {
      this.#add(text)
      for (const view of text.views ?? []) this.#addView(view)
    }
  }

  #addView({ channel, text }: TextView) {
    if (!this.isTooLong) this.#views.set(channel, (this.#views.get(channel) ?? '') + text)
  }

  #add({ channel, text, kind }: FrameText) {
    const origin = originOf(channel)
    const known = this.#texts.get(origin) ?? ''
    const isNew = origin !== channel && !this.#resumed.has(channel)
    if (isNew) this.#resumed.add(channel)
    const more = isNew ? text.slice(Math.min(tailLength, known.length)) : text
    const grown = kind === 'delta' ? known + more : text
    this.#length += grown.length - known.length
    if (!this.isTooLong) this.#texts.set(origin, grown)
  }

  /** Then a part of the answer is missing here. */
  get isTooLong(): boolean {
    return this.#length > lengthMax
  }

  all(): readonly string[] {
    return [...this.#texts.values()]
  }

  /** The same with the other readings, as rules see it. */
  passages(): readonly Passage[] {
    const views = Map.groupBy(this.#views, ([channel]) => joinsWords(channel))
    const textsOf = (isWords: boolean) => (views.get(isWords) ?? []).map(([, text]) => text)
    return [
      { parts: this.all(), wholes: textsOf(false), isDecoded: true },
      { parts: [], wholes: textsOf(true), isDecoded: true, isRepeated: true },
    ]
  }
}
